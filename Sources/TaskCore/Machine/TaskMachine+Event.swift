extension TaskMachine {
  /// What happens to a task.
  public enum Event: Hashable, Sendable {
    /// The last task that this one waits for has succeeded.
    case dependenciesSatisfied
    /// A worker claims the task.
    case claimed
    /// The worker has verified all bytes and is about to publish them.
    case publishing
    case succeeded
    /// The attempt failed and counts; `retryIn` is `nil` if the task fails for good.
    case failed(retryIn: Duration?)
    /// The attempt failed but made progress: the number of attempts starts from 0 again.
    case progressed(retryIn: Duration)
    /// The worker hands the task back; the attempt does not count.
    case released(delay: Duration)
    /// The worker's lease is over; the attempt does not count.
    case leaseExpired
    case control(ControlAction)
  }

  /// What the store does in addition to recording the machine's new fields, in the same transaction.
  public enum Action: Hashable, Sendable {
    /// Put the task among the tasks that may run now, or later if its `notBefore` lies ahead.
    case enqueue(QueuePlace)
    /// Take the task out of its place among the waiting tasks.
    case dequeue
    /// Record that a worker owns the task.
    case beginRun
    /// Record that no worker owns the task. Its share of every limit is free again.
    case endRun
    /// Return the intent with every renewal of the worker's lease until the run ends.
    case tellWorker(Intent)
    /// Delete the intent.
    case withdrawIntent
    case setPriority(Int)
    /// Tell the tasks that wait for this one that it has succeeded.
    case satisfyDependents
    /// Delete the task and its checkpoint. The store keeps a clean-up for what the task left elsewhere.
    case delete
    /// Write the event to the outbox, with the machine's ``TaskMachine/sequence``.
    case publish(TaskEvent.Kind)
  }

  public enum QueuePlace: Hashable, Sendable {
    case back
    /// Before all other tasks of its lane, because it had its turn and is not at fault that the run ended.
    case front
    case after(Duration)
  }
}

extension TaskMachine.Event {
  /// The event's name in errors and in the diagram.
  public var name: String {
    switch self {
    case .dependenciesSatisfied: "dependencies satisfied"
    case .claimed: "claimed"
    case .publishing: "publishing"
    case .succeeded: "succeeded"
    case .failed(retryIn: nil): "failed for good"
    case .failed: "failed"
    case .progressed: "failed after progress"
    case .released: "released"
    case .leaseExpired: "lease expired"
    case .control(let action): action.name
    }
  }
}
