import System

/// A server process of the fleet's own.
protocol LocalServer: Sendable {
  /// What people call it.
  static var name: String { get }
  var logFile: String { get }

  /// Waits until the server ends, by itself or because it is stopped.
  func ended() async -> ExitStatus
  func stop() async
}

/// The place of a server, which is started again where it was whenever it ends by itself.
final class ServerSlot<Server: LocalServer>: Sendable {
  private struct State {
    var server: Server
    var isStopping = false
  }

  private let restart: @Sendable () async throws -> Server
  private let say: @Sendable (String) -> Void
  private let state: Lock<State>
  private let supervision = Lock<Task<Void, Never>?>(nil)

  /// Looks after `server` from now on; `restart` starts it on the same port and data.
  init(
    _ server: Server, say: @escaping @Sendable (String) -> Void,
    restart: @escaping @Sendable () async throws -> Server
  ) {
    self.restart = restart
    self.say = say
    state = Lock(State(server: server))
    supervision.withLock { $0 = Task { await supervise(server) } }
  }

  /// The server that runs now, or ran last.
  var server: Server { state.withLock { $0.server } }

  func stop() async {
    state.withLock { $0.isStopping = true }
    let task = supervision.withLock { $0 }
    task?.cancel()
    await server.stop()
    await task?.value
  }

  private func supervise(_ first: Server) async {
    var backoff = RestartBackoff()
    var server = first
    while true {
      let start = ContinuousClock.now
      let status = await server.ended()
      guard !isStopping else { return }
      say("\(Server.name) ended with \(status); starting it again. Its log: \(server.logFile)")
      var uptime = ContinuousClock.now - start
      while true {
        guard (try? await Task.sleep(for: backoff.delay(afterRunning: uptime))) != nil, !isStopping else { return }
        uptime = .zero
        do {
          server = try await restart()
          break
        } catch {
          guard !isStopping else { return }
          say("\(Server.name) cannot be started: \(error)")
        }
      }
      let isStopping = state.withLock { [server] state in
        state.server = server
        return state.isStopping
      }
      if isStopping { return await server.stop() }
      say("\(Server.name) runs again")
    }
  }

  private var isStopping: Bool { state.withLock { $0.isStopping } }
}

extension EmbeddedPostgres: LocalServer {
  static let name = "PostgreSQL"

  func stop() async { await stop(.fast) }
}

extension ApacheKafka: LocalServer {
  static let name = "Apache Kafka"
}
