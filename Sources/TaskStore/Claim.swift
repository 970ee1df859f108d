import TaskCore

/// A task that a worker has claimed, with its last checkpoint.
package struct Claim: Hashable, Sendable {
  package var spec: TaskSpec
  package var epoch: Int
  /// The number of this attempt, from 1.
  package var attempt: Int
  package var checkpoint: Checkpoint?

  package init(spec: TaskSpec, epoch: Int, attempt: Int, checkpoint: Checkpoint?) {
    self.spec = spec
    self.epoch = epoch
    self.attempt = attempt
    self.checkpoint = checkpoint
  }
}
