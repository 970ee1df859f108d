import TaskCore

/// What the engine tells the worker of a run, and asks it.
package protocol TransferLedger: Sendable {
  /// How far it is. Cheap, never blocks; called at most four times a second.
  func progress(bytesDone: Int64, bytesTotal: Int64?)

  /// The run goes on where no byte comes: as its file is verified. Cheap.
  func pulse()

  /// Which of the task's owners this run is; higher than that of any before it.
  var epoch: Int { get }

  /// Whether this run may touch its files now; asked before every write. Cheap.
  var mayWrite: Bool { get }
}

/// A ledger that records what a download needs to go on.
package protocol DownloadLedger: TransferLedger {
  /// Records what is on stable storage; returns once the store has committed it. Throws when the task has another owner
  /// now, and then ``TransferLedger/mayWrite`` is false; any other error is the store's and ends the run without counting
  /// it.
  func checkpoint(_ checkpoint: DownloadCheckpoint) async throws
}
