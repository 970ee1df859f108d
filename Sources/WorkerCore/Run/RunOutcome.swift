import TaskCore

/// How one run of a task ended, as its handler saw it.
package enum RunOutcome: Hashable, Sendable {
  /// `output` is what the work gives back: one JSON value of at most ``TaskDocument/outputLimit`` bytes.
  case succeeded(sha256: [UInt8]?, bytes: Int64, output: [UInt8]? = nil)
  case failed(TaskFailure)
  /// The run was told to stop, and has; what it had is recorded.
  case stopped
}
