/// A ledger that records what the next run of an upload needs to continue.
package protocol UploadLedger: TransferLedger {
  /// Returns once the store has committed it. Throws if the task has another owner now; ``TransferLedger/mayWrite`` is
  /// then false. Any other error comes from the store: it ends the run, and the run is not counted as an attempt.
  func checkpoint(_ checkpoint: UploadCheckpoint) async throws

  /// Whether an earlier run had recorded something, and with a cancel nobody knows any more what.
  var beginsAnew: Bool { get }
}
