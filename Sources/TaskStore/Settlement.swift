import TaskCore

/// The end of a run.
package struct Settlement: Hashable, Sendable {
  package enum Outcome: Hashable, Sendable {
    case succeeded(sha256: [UInt8]?, bytes: Int64, output: [UInt8]? = nil)
    /// The attempt failed and counts. `retryIn` is nil if the task fails for good.
    case failed(TaskFailure, retryIn: Duration?)
    /// The attempt failed but made progress. The number of attempts starts from 0 again.
    case progressed(TaskFailure, retryIn: Duration)
    /// The attempt does not count. The task returns to its queue after `delay`, or is paused or canceled if an intent
    /// says so. `reason` is why it waits; nil if the worker only hands it back.
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
