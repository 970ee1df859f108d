import TaskCore

/// A task that a worker has claimed, with its last checkpoint.
package struct Claim: Hashable, Sendable {
  package var spec: TaskSpec
  package var epoch: Int
  /// The number of this attempt, from 1.
  package var attempt: Int
  package var checkpoint: Checkpoint?
  /// Whether an earlier run had recorded a checkpoint, which went when the task was canceled.
  package var beginsAnew: Bool

  package init(spec: TaskSpec, epoch: Int, attempt: Int, checkpoint: Checkpoint?, beginsAnew: Bool = false) {
    self.spec = spec
    self.epoch = epoch
    self.attempt = attempt
    self.checkpoint = checkpoint
    self.beginsAnew = beginsAnew
  }
}
