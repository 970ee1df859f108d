/// What a producer asks for. A submit is idempotent by its task's id, a control by the command's.
public enum Command: Hashable, Sendable {
  // Indirect: a task has many fields, and commands are handed on by the thousand.
  indirect case submit(TaskSpec)
  case control(Control)

  public struct Control: Hashable, Sendable {
    /// The command's own id. Where the message has none, the decoder derives one from where the record lies.
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
