import TaskCore

/// What a download tells its worker.
package protocol DownloadLedger: Sendable {
  /// Records what is on stable storage; returns once the store has committed it. Throws when the task has another owner
  /// now, and then ``mayWrite`` is false; any other error is the store's and ends the run without counting it.
  func checkpoint(_ checkpoint: DownloadCheckpoint) async throws

  /// How far it is. Cheap, never blocks; called at most four times a second.
  func progress(bytesDone: Int64, bytesTotal: Int64?)

  /// The run goes on where no byte comes: as its file is verified. Cheap.
  func pulse()

  /// Which of the task's owners this run is; higher than that of any before it.
  var epoch: Int { get }

  /// Whether this run may touch its files now; asked before every write. Cheap.
  var mayWrite: Bool { get }
}
