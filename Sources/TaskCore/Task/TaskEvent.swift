/// A state change, published once its transaction is committed.
public struct TaskEvent: Sendable, Hashable {
  public enum Kind: String, Sendable, CaseIterable {
    case submitted, started, publishing, succeeded, failed, retrying
    /// The worker has handed the task back, or was lost.
    case released
    /// All tasks that it waited for have succeeded.
    case unblocked
    case paused, resumed, canceled, prioritized, removed
  }

  public var taskID: UniqueID
  public var sequence: Int
  public var kind: Kind
  public var at: Timestamp
  /// Who asked for it, if a command did and told.
  public var actor: String?
  /// The task at the time when the event was published, which may be later than the event; `nil` if it is removed.
  public var task: TaskDocument?

  public init(
    taskID: UniqueID, sequence: Int, kind: Kind, at: Timestamp, actor: String? = nil, task: TaskDocument?
  ) {
    self.taskID = taskID
    self.sequence = sequence
    self.kind = kind
    self.at = at
    self.actor = actor
    self.task = task
  }

  /// The id of this event, equal for every publication of it: a version 8 UUID, computed from task and sequence.
  public var id: UniqueID {
    taskID.derived(by: UInt64(bitPattern: Int64(sequence)) &* 0x9E37_79B9_7F4A_7C15)
  }
}
