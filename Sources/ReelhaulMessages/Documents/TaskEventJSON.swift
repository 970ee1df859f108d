import ReelhaulCodec
import TaskCore

/// A task's state change as JSON, the value of a record of the `events` topic.
package enum TaskEventJSON {
  package static func encode(_ event: TaskEvent) -> [UInt8] {
    encode(event, task: event.task.map(TaskDocumentJSON.encode))
  }

  /// The same, with the task's document as JSON, which several events of one task may share.
  package static func encode(_ event: TaskEvent, task: [UInt8]?) -> [UInt8] {
    JSONWriter.write(capacity: 256 + (task?.count ?? 0)) { json in
      json.object { json in
        json.member("id", event.id)
        json.member("taskId", event.taskID)
        json.member("sequence", event.sequence)
        json.member("type", event.kind.rawValue)
        json.member("at", event.at)
        json.member("actor", event.actor)
        json.name("task")
        if let task { json.raw(task) } else { json.null() }
      }
    }
  }

  package static func decode(_ bytes: [UInt8]) throws(DecodingFailure) -> TaskEvent {
    try JSONReader.read(bytes) { reader throws(DecodingFailure) in
      var taskID: UniqueID?
      var sequence: Int?
      var kind: TaskEvent.Kind?
      var at: Timestamp?
      var actor: String?
      var task: TaskDocument?
      try reader.object { reader, name throws(DecodingFailure) in
        switch name {
        case "taskId": taskID = try reader.uuid()
        case "sequence": sequence = try reader.integer()
        case "type": kind = try reader.choice()
        case "at": at = try reader.timestamp()
        case "actor": actor = try reader.string()
        case "task": task = try TaskDocumentJSON.read(from: &reader)
        default: try reader.skip()
        }
      }
      guard let taskID else { throw reader.missing("taskId") }
      guard let sequence else { throw reader.missing("sequence") }
      guard let kind else { throw reader.missing("type") }
      guard let at else { throw reader.missing("at") }
      return TaskEvent(taskID: taskID, sequence: sequence, kind: kind, at: at, actor: actor, task: task)
    }
  }
}
