import Glibc
import ReelhaulKafka
import ReelhaulPostgres
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore
import TransferEngine

/// A worker as a process: makes the real parts, runs until a signal asks it to stop, and ends all parts.
package enum WorkerProcess {
  /// The exit code if the configuration or the database is refused, because waiting does not help.
  package static let misconfigured: Int32 = 2

  /// Runs a worker until SIGTERM or SIGINT. A second signal ends the drain at once. Waits for Kafka and PostgreSQL.
  ///
  /// Returns the exit code: 0 after a complete drain, ``DrainMachine/unfinished`` if it was cut short, or
  /// ``misconfigured``. Throws ``DuplicateKind``.
  package static func run(
    _ configuration: WorkerConfiguration, kinds: WorkerKinds = WorkerKinds(), log: Logger = Logger()
  ) async throws(DuplicateKind) -> Int32 {
    Heap.bound()
    FileLimit.raise()
    let process: RunningWorker
    do {
      process = try await RunningWorker.start(configuration, kinds: kinds, log: log)
    } catch {
      log.error("the worker cannot start", ["error": .text("\(error)")])
      if let error = error as? DuplicateKind { throw error }
      return misconfigured
    }
    let signals = await process.stopOn([SIGTERM, SIGINT])
    let lastResort = process.exitUnlessCanceled(log)
    let code = await process.finished()
    lastResort.cancel()
    // If calls hang, the process ends without waiting for them.
    if code == 0, await !process.hasHangingCalls { await process.close(signals) }
    return code
  }
}
