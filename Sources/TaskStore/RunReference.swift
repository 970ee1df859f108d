import TaskCore

/// One run of a task: every write of the worker that owns it names both.
package struct RunReference: Hashable, Sendable {
  package var taskID: UUID
  package var epoch: Int

  package init(taskID: UUID, epoch: Int) {
    self.taskID = taskID
    self.epoch = epoch
  }
}
