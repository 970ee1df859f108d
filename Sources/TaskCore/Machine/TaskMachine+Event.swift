extension TaskMachine {
  /// What happens to a task.
  public enum Event: Hashable, Sendable {
    /// The last task that this one comes after has succeeded.
    case dependenciesSatisfied
    /// A worker takes it.
    case claimed
    /// Its worker has all bytes, verified, and is about to publish them.
    case publishing
    case succeeded
    /// A counted attempt failed; `retryIn` is `nil` where the task fails for good.
    case failed(retryIn: Duration?)
    /// An attempt failed that made progress: attempts are counted anew.
    case progressed(retryIn: Duration)
    /// Its worker hands it back; the attempt does not count.
    case released(delay: Duration)
    /// Its worker's lease is over; the attempt does not count.
    case leaseExpired
    case control(ControlAction)
  }

  /// What the store does besides recording the machine's new fields, in the same transaction.
  public enum Action: Hashable, Sendable {
    /// Give it a place among those that may run (or wait for their time: a `notBefore` ahead still holds).
    case enqueue(QueuePlace)
    /// Take it from among those that may run.
    case dequeue
    /// Record the worker's ownership.
    case beginRun
    /// End the worker's ownership; what it held of every limit is free again.
    case endRun
    /// Let the worker know, with every renewal until the run ends.
    case tellWorker(Intent)
    /// Forget what the worker was told.
    case withdrawIntent
    case setPriority(Int)
    /// Tasks that come after this one may have become free to run.
    case satisfyDependents
    /// Delete the task and its checkpoint; its staging file goes when nobody has known it for long.
    case delete
    /// Write the event to the outbox, with the machine's ``TaskMachine/sequence``.
    case publish(TaskEvent.Kind)
  }

  public enum QueuePlace: Hashable, Sendable {
    case back
    /// Before all others of its lane: it had its turn and lost it through no fault of its own.
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
