import ReelhaulCodec
import TaskCore

/// The fields of a command message, before they are combined to a command.
struct CommandEnvelope {
  private static let commands = (["submit"] + ControlAction.names).joined(separator: ", ")

  private var command: String?
  private var id: UniqueID?
  private var taskID: UniqueID?
  private var priority: Int?
  private var files = false
  private var task: TaskDraft?
  private var actor: String?

  /// `known` are the allowed names: those of the command, if it is already known.
  init(from reader: inout JSONReader, known: [String]? = nil) throws(DecodingFailure) {
    var command: String?
    var id: UniqueID?
    var taskID: UniqueID?
    var priority: Int?
    var files = false
    var task: TaskDraft?
    var actor: String?
    try reader.object(known: known) { reader, name throws(DecodingFailure) in
      switch name {
      case "command": command = try reader.string(limit: 64)
      case "id": id = try reader.uuid()
      case "taskId": taskID = try reader.uuid()
      case "priority": priority = try reader.integer(TaskSpec.priorities)
      case "files": files = try reader.bool()
      case "task": task = try TaskDraft(from: &reader)
      case "actor":
        let text = try reader.string(limit: 4 * Command.Control.actorLimit)
        guard Command.Control.isActor(text) else {
          throw reader.invalid(
            "expected 1 to \(Command.Control.actorLimit) characters without control characters, such as cli:anna@mill")
        }
        actor = text
      default: try reader.skip()
      }
    }
    (self.command, self.id, self.taskID, self.priority, self.task) = (command, id, taskID, priority, task)
    (self.files, self.actor) = (files, actor)
  }

  /// The fields that `command` may have; nil if there is no such command.
  static func names(of command: String) -> [String]? {
    switch command {
    case "submit": ["command", "id", "task", "actor"]
    case "prioritize": ["command", "id", "taskId", "priority", "actor"]
    case "remove": ["command", "id", "taskId", "files", "actor"]
    default: ControlAction.names.contains(command) ? ["command", "id", "taskId", "actor"] : nil
    }
  }

  func command(makeID: () -> UniqueID) throws(Rejection) -> Command {
    guard let command else {
      throw Rejection(.missingField, "\"command\" is missing; expected one of \(Self.commands)")
    }
    guard command != "submit" else { return .submit(try submission(makeID: makeID)) }
    let action = try action(command)
    guard let taskID else { throw Rejection(.missingField, "\"taskId\" is missing: it names the task to \(command)") }
    return .control(Command.Control(id: id ?? makeID(), taskID: taskID, action: action, actor: actor))
  }

  /// The task of a submit. Its own id identifies the command, and the message's `id` stands in for it.
  private func submission(makeID: () -> UniqueID) throws(Rejection) -> TaskSpec {
    guard let task else { throw Rejection(.missingField, "\"task\" is missing: it is the task to submit") }
    return try task.submission(in: "task") { id ?? makeID() }
  }

  private func action(_ command: String) throws(Rejection) -> ControlAction {
    if let action = ControlAction(name: command, priority: priority, files: files) { return action }
    guard !ControlAction.names.contains(command) else {
      throw Rejection(.missingField, "\"priority\" is missing: it is the new priority")
    }
    throw Rejection(.unknownCommand, "the command is unknown; expected one of \(Self.commands)")
  }
}
