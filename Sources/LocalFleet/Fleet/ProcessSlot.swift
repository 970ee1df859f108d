import ReelhaulSystem

/// A process that belongs to the fleet.
package protocol SupervisedProcess: Sendable {
  /// Waits until the process ends, by itself or because it is stopped.
  func ended() async -> ExitStatus
}

/// Keeps one process running: it is started again whenever it ends by itself.
package final class ProcessSlot<Process: SupervisedProcess>: Sendable {
  private struct State {
    var process: Process
    var isStopping = false
  }

  /// The name for people.
  package let name: String
  package let logFile: String
  let say: @Sendable (String) -> Void
  private let sleep: @Sendable (Duration) async throws -> Void
  private let restart: @Sendable () async throws -> Process
  private let state: Lock<State>
  private let supervision = Lock<Task<Void, Never>?>(nil)

  /// Supervises `process` from now on. `restart` starts it again.
  init(
    _ process: Process, name: String, logFile: String, say: @escaping @Sendable (String) -> Void,
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
    restart: @escaping @Sendable () async throws -> Process
  ) {
    self.name = name
    self.logFile = logFile
    self.say = say
    self.sleep = sleep
    self.restart = restart
    state = Lock(State(process: process))
    supervision.withLock { $0 = Task { await supervise() } }
  }

  /// The present process, or the last one.
  var process: Process { state.withLock { $0.process } }

  /// Ends the process for good with `end`, which does nothing to a process that has ended.
  func stop(_ end: (Process) async -> Void) async {
    state.withLock { $0.isStopping = true }
    let task = supervision.withLock { $0 }
    task?.cancel()
    await end(process)
    await task?.value
    // The slot may just have started the process again.
    await end(process)
  }

  private func supervise() async {
    var backoff = RestartBackoff()
    while true {
      let start = BootInstant.now
      let status = await process.ended()
      guard !isStopping else { return }
      // A worker that was told to drain: the next one takes its place, and this is no crash.
      let wasAsked = status == .exited(0)
      var delay = backoff.delay(afterRunning: BootInstant.now - start, wasAsked: wasAsked)
      let end = wasAsked ? "has ended in order" : "ended with \(status)"
      say("\(name) \(end); starting it again in \(delay). Its log: \(logFile)")
      while true {
        guard (try? await sleep(delay)) != nil, !isStopping else { return }
        do {
          let next = try await restart()
          state.withLock { $0.process = next }
          break
        } catch {
          guard !isStopping else { return }
          delay = backoff.delay(afterRunning: .zero)
          say("\(name) cannot be started: \(error). Trying again in \(delay)")
        }
      }
      // A stop may have ended the former process.
      guard !isStopping else { return }
      say("\(name) runs again")
    }
  }

  private var isStopping: Bool { state.withLock { $0.isStopping } }
}

extension EmbeddedPostgres: SupervisedProcess {}

extension ApacheKafka: SupervisedProcess {}
