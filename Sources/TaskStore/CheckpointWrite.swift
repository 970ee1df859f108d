import TaskCore

/// A checkpoint by the owner of a task's epoch.
package struct CheckpointWrite: Hashable, Sendable {
  package var taskID: UniqueID
  package var epoch: Int
  package var checkpoint: Checkpoint

  package init(taskID: UniqueID, epoch: Int, checkpoint: Checkpoint) {
    self.taskID = taskID
    self.epoch = epoch
    self.checkpoint = checkpoint
  }
}
