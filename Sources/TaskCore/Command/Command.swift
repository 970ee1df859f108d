/// A command of a producer. A submit is idempotent by the id of its task, a control by the id of the command.
public enum Command: Hashable, Sendable {
  // Indirect, because a task has many fields, and commands are passed on in large numbers.
  indirect case submit(TaskSpec)
  case control(Control)

  public struct Control: Hashable, Sendable {
    /// The command's own id. If the message has none, the decoder derives one from the record's topic, partition and
    /// offset.
    public var id: UniqueID
    public var taskID: UniqueID
    public var action: ControlAction

    public init(id: UniqueID, taskID: UniqueID, action: ControlAction) {
      self.id = id
      self.taskID = taskID
      self.action = action
    }
  }

  public var taskID: UniqueID {
    switch self {
    case .submit(let spec): spec.id
    case .control(let control): control.taskID
    }
  }
}
