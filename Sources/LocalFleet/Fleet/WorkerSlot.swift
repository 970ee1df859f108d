import Glibc
import ReelhaulSystem

package typealias WorkerSlot = ProcessSlot<ChildProcess>

extension ChildProcess: SupervisedProcess {
  package func ended() async -> ExitStatus { await wait() }
}

extension WorkerSlot {
  /// Starts the worker. `environment` overrides this process's environment.
  convenience init(
    worker name: String, executable: String, environment: [String: String], logFile: String,
    say: @escaping @Sendable (String) -> Void
  ) throws {
    let spawn: @Sendable () throws -> ChildProcess = {
      var options = ChildProcess.Options()
      options.environment = environment
      options.stdout = logFile
      options.stderr = logFile
      return try ChildProcess(executable, ["worker"], options)
    }
    self.init(try spawn(), name: name, logFile: logFile, say: say, restart: spawn)
  }

  /// The id of the present process.
  package var pid: Int32? {
    let process = process
    return process.status == nil ? process.pid : nil
  }

  package func kill(_ signal: Int32) {
    process.kill(signal)
  }

  /// Asks the worker to drain, waits for its end, and ends it by force after `limit`.
  func stop(within limit: Duration) async {
    await stop { process in
      process.kill(SIGTERM)
      let force = Task {
        try await Task.sleep(for: limit)
        say("\(name) did not end within \(limit): killed")
        process.kill(SIGKILL)
      }
      _ = await process.wait()
      force.cancel()
    }
  }
}
