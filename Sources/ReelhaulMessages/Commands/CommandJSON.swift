import ReelhaulCodec
import TaskCore

/// Encodes commands. ``CommandDecoder`` decodes them.
package enum CommandJSON {
  /// The message of `command`. A submit has no id of its own, because its task's id makes it idempotent.
  package static func encode(_ command: Command) -> [UInt8] {
    JSONWriter.write { json in
      json.object { json in
        switch command {
        case .submit(let spec):
          json.member("command", "submit")
          json.name("task")
          TaskSpecJSON.write(spec, to: &json)
        case .control(let control):
          json.member("command", control.action.name)
          json.member("id", control.id)
          json.member("taskId", control.taskID)
          switch control.action {
          case .prioritize(let priority): json.member("priority", priority)
          case .remove(files: true): json.member("files", true)
          default: break
          }
          json.member("actor", control.actor)
        }
      }
    }
  }
}
