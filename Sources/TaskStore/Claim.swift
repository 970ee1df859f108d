import TaskCore

/// A task that a worker owns from now on, and how far it had come.
package struct Claim: Hashable, Sendable {
  package var spec: TaskSpec
  package var epoch: Int
  /// This attempt's number, from 1.
  package var attempt: Int
  package var checkpoint: Checkpoint?

  package init(spec: TaskSpec, epoch: Int, attempt: Int, checkpoint: Checkpoint?) {
    self.spec = spec
    self.epoch = epoch
    self.attempt = attempt
    self.checkpoint = checkpoint
  }
}
