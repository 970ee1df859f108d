import TaskCore

/// What the worker shall do about a running task: stop it and settle it as ``Settlement/Outcome/released``; the store
/// then knows whether that means paused or canceled.
package struct Intent: Hashable, Sendable {
  package enum What: String, Sendable { case pause, cancel, requeue }
  package var taskID: UUID
  package var what: What

  package init(taskID: UUID, what: What) {
    self.taskID = taskID
    self.what = what
  }
}
