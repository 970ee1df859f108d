import TaskCore

/// The end of a run.
package struct Settlement: Hashable, Sendable {
  package enum Outcome: Hashable, Sendable {
    case succeeded(sha256: [UInt8]?, bytes: Int64, output: [UInt8]? = nil)
    /// A counted attempt failed; `retryIn` is nil where the task is to fail for good.
    case failed(TaskFailure, retryIn: Duration?)
    /// An attempt failed that made progress: those before it count no longer, and it does not either.
    case progressed(TaskFailure, retryIn: Duration)
    /// Back to the queue after `delay` without counting the attempt, or to where an intent wants it (paused,
    /// canceled). `reason` is why it waits, or nil for a plain hand-back.
    case released(reason: TaskFailure?, delay: Duration)
  }
  package var taskID: UniqueID
  package var epoch: Int
  package var outcome: Outcome

  package init(taskID: UniqueID, epoch: Int, outcome: Outcome) {
    self.taskID = taskID
    self.epoch = epoch
    self.outcome = outcome
  }
}
