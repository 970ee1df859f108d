import TaskCore

/// How a transfer reports to the worker that runs it, and asks whether it may go on.
package protocol TransferLedger: Sendable {
  /// Reports the progress. Cheap and never blocks; a download calls it at most four times a second.
  func progress(bytesDone: Int64, bytesTotal: Int64?)

  /// Shows that the run is alive, also while no bytes arrive because it verifies its file. Cheap.
  ///
  /// An upload, a copy to a server or between storages, and a deletion at a server call it by a timer: they may wait for
  /// a server or a disk for long, and rely on the time limits of their requests.
  func pulse()

  /// The epoch of this run: higher than that of every earlier run of the task.
  var epoch: Int { get }

  /// Whether this run may touch its files now. The engine checks it before every write. Cheap.
  var mayWrite: Bool { get }
}

/// A ledger that records what the next run of a download needs to continue.
package protocol DownloadLedger: TransferLedger {
  /// Records what is on stable storage, and returns once the store has committed it. Throws if the task has another
  /// owner now; ``TransferLedger/mayWrite`` is then false. A `TaskFailure` is that of the run. Any other error comes from
  /// the store: it ends the run, and the run is not counted as an attempt. The store may be asked up to `patience` later,
  /// together with other runs.
  func checkpoint(_ checkpoint: DownloadCheckpoint, patience: Duration) async throws
}

extension DownloadLedger {
  func checkpoint(_ checkpoint: DownloadCheckpoint) async throws {
    try await self.checkpoint(checkpoint, patience: .zero)
  }
}

extension TaskFailure {
  /// The ledger could not record a checkpoint.
  package static func unrecorded(_ error: any Error) -> TaskFailure {
    error as? TaskFailure
      ?? TaskFailure(code: .checkpointFailed, message: "progress could not be recorded: \(error)", class: .wait)
  }
}
