import TaskCore

/// A checkpoint by the owner of a task's epoch.
package struct CheckpointWrite: Hashable, Sendable {
  package var taskID: UUID
  package var epoch: Int
  package var checkpoint: Checkpoint

  package init(taskID: UUID, epoch: Int, checkpoint: Checkpoint) {
    self.taskID = taskID
    self.epoch = epoch
    self.checkpoint = checkpoint
  }
}
