import TaskCore

/// How a run of an upload ended.
package enum UploadOutcome: Hashable, Sendable {
  /// `bytes` is the size of the file, and 0 if an existing one was left as it is.
  case succeeded(UploadedObject, bytes: Int64)
  case failed(TaskFailure)
  /// The run was canceled, or the task has another owner.
  case stopped
}

/// The upload that a session names is not there any more: the file is sent anew.
package struct UploadGone: Error, Hashable, Sendable {}

/// The server does not have all that it has confirmed: it is asked, and sent what is missing.
package struct UploadIncomplete: Error, Hashable, Sendable {}

/// A segment was interrupted.
package struct UploadInterrupted: Error, Hashable, Sendable {
  package let failure: TaskFailure
  /// Where in the file the last request ended: the server cannot have more.
  package let end: Int64

  package init(_ failure: TaskFailure, before end: Int64) {
    self.failure = failure
    self.end = end
  }
}
