import System

/// The place of the fleet's own PostgreSQL, which is started again on its port whenever it ends by itself.
final class PostgresSlot: Sendable {
  private struct State {
    var server: EmbeddedPostgres
    var isStopping = false
  }

  private let directory: String
  private let say: @Sendable (String) -> Void
  private let state: Lock<State>
  private let supervision = Lock<Task<Void, Never>?>(nil)

  /// Looks after `server` from now on.
  init(_ server: EmbeddedPostgres, directory: String, say: @escaping @Sendable (String) -> Void) {
    self.directory = directory
    self.say = say
    state = Lock(State(server: server))
    supervision.withLock { $0 = Task { await supervise(server) } }
  }

  /// The server that runs now, or ran last.
  var server: EmbeddedPostgres { state.withLock { $0.server } }

  func stop() async {
    state.withLock { $0.isStopping = true }
    let task = supervision.withLock { $0 }
    task?.cancel()
    await server.stop()
    await task?.value
  }

  private func supervise(_ first: EmbeddedPostgres) async {
    var backoff = RestartBackoff()
    var server = first
    while true {
      let start = ContinuousClock.now
      let status = await server.ended()
      guard !isStopping else { return }
      say("PostgreSQL (pid \(server.pid)) ended with \(status); starting it again. Its log: \(server.logFile)")
      var uptime = ContinuousClock.now - start
      while true {
        guard (try? await Task.sleep(for: backoff.delay(afterRunning: uptime))) != nil, !isStopping else { return }
        uptime = .zero
        do {
          server = try await EmbeddedPostgres.start(directory: directory, port: first.port)
          break
        } catch {
          guard !isStopping else { return }
          say("PostgreSQL cannot be started: \(error)")
        }
      }
      let isStopping = state.withLock { [server] state in
        state.server = server
        return state.isStopping
      }
      if isStopping { return await server.stop() }
      say("PostgreSQL runs again")
    }
  }

  private var isStopping: Bool { state.withLock { $0.isStopping } }
}
