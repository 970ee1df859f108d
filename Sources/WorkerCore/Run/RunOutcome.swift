import TaskCore

/// How one run of a task ended, as its handler saw it.
package enum RunOutcome: Hashable, Sendable {
  case succeeded(sha256: [UInt8]?, bytes: Int64)
  case failed(TaskFailure)
  /// The run was told to stop, and has; what it had is recorded.
  case stopped
}
