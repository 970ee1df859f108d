import Glibc
import System

/// A place for one worker process, which is started again whenever it ends by itself.
package final class WorkerSlot: Sendable {
  private struct State {
    var process: ChildProcess?
    var isStopping = false
  }

  package let name: String
  package let logFile: String
  private let executable: String
  private let environment: [String: String]
  private let say: @Sendable (String) -> Void
  private let state = Lock(State())
  private let supervision = Lock<Task<Void, Never>?>(nil)

  init(
    name: String, executable: String, environment: [String: String], logFile: String,
    say: @escaping @Sendable (String) -> Void
  ) {
    self.name = name
    self.executable = executable
    self.environment = environment
    self.logFile = logFile
    self.say = say
  }

  /// The process that runs now.
  package var pid: Int32? {
    state.withLock { $0.process.flatMap { $0.status == nil ? $0.pid : nil } }
  }

  package func kill(_ signal: Int32) {
    state.withLock { $0.process }?.kill(signal)
  }

  func start() throws {
    let process = try spawn()
    supervision.withLock { $0 = Task { await supervise(process) } }
  }

  /// Asks the worker to drain, ends it by force after `limit`, and waits for its end.
  func stop(within limit: Duration) async {
    let process = state.withLock { state in
      state.isStopping = true
      return state.process
    }
    process?.kill(SIGTERM)
    let force = Task {
      try await Task.sleep(for: limit)
      say("\(name) did not end within \(limit): killed")
      kill(SIGKILL)
    }
    _ = await process?.wait()
    force.cancel()
    let task = supervision.withLock { $0 }
    task?.cancel()
    await task?.value
  }

  private func supervise(_ first: ChildProcess) async {
    var backoff = RestartBackoff()
    var process = first
    while true {
      let start = ContinuousClock.now
      let status = await process.wait()
      guard !isStopping else { return }
      let delay = backoff.delay(afterRunning: ContinuousClock.now - start)
      say("\(name) (pid \(process.pid)) ended with \(status); starting it again in \(delay). Its log: \(logFile)")
      while true {
        guard (try? await Task.sleep(for: delay)) != nil, !isStopping else { return }
        do {
          process = try spawn()
          break
        } catch {
          say("\(name) cannot be started: \(error)")
        }
      }
    }
  }

  private var isStopping: Bool { state.withLock { $0.isStopping } }

  private func spawn() throws -> ChildProcess {
    var options = ChildProcess.Options()
    options.environment = environment
    options.stdout = logFile
    options.stderr = logFile
    let process = try ChildProcess(executable, ["worker"], options)
    let isStopping = state.withLock { state in
      state.process = process
      return state.isStopping
    }
    if isStopping { process.kill(SIGTERM) }
    return process
  }
}
