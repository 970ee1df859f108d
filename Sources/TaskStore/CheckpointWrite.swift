import TaskCore

/// A checkpoint that the run with this epoch records.
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
