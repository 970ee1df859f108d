import TaskCore

/// How one run of a task ended, according to its handler.
package enum RunOutcome: Hashable, Sendable {
  /// `output` is the result of the work: one JSON value of at most ``TaskDocument/outputLimit`` bytes.
  case succeeded(sha256: [UInt8]?, bytes: Int64, output: [UInt8]? = nil)
  case failed(TaskFailure)
  /// The run has stopped because it had to, and has recorded its progress if it could.
  case stopped
}
