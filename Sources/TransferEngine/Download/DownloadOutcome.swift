import TaskCore

/// How a run of a download ended.
package enum DownloadOutcome: Hashable, Sendable {
  /// The file is at its destination. `sha256` is `nil` where nothing was hashed: the destination existed and was to be
  /// left as it is, or hashing is off.
  case succeeded(sha256: [UInt8]?, bytes: Int64)
  case failed(TaskFailure)
  /// Stopped as asked, or because the task has another owner. What is on disk is recorded as far as it could be.
  case stopped
}
