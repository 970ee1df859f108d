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
    /// Who asks for it, for people: the name of a token, or `cli:USER@HOST`. Up to ``actorLimit`` characters, none of
    /// them a control character.
    public var actor: String?

    public static let actorLimit = 200

    public init(id: UniqueID, taskID: UniqueID, action: ControlAction, actor: String? = nil) {
      self.id = id
      self.taskID = taskID
      self.action = action
      self.actor = actor
    }

    /// Whether a text may be the name of an actor.
    public static func isActor(_ text: String) -> Bool {
      !text.isEmpty && text.unicodeScalars.count <= actorLimit
        && text.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7F...0x9F ~= $0.value) }
    }
  }

  /// The id by which it is idempotent.
  package var id: UniqueID {
    switch self {
    case .submit(let spec): spec.id
    case .control(let control): control.id
    }
  }

  public var taskID: UniqueID {
    switch self {
    case .submit(let spec): spec.id
    case .control(let control): control.taskID
    }
  }
}
