import ReelhaulCodec
import ReelhaulKafka
import ReelhaulMessages
import TaskCore

/// A record of the topic `events`, and what filters ask about it.
struct EventEntry: Sendable {
  let partition: Int
  let offset: Int64
  /// Milliseconds since 1970.
  let timestamp: Int64
  /// One line of JSON.
  let json: [UInt8]
  let taskID: UniqueID
  let type: String
  /// Nil if the task is removed: then the event has no document of it.
  let task: TaskTraits?

  /// Nil if the record is not an event.
  init?(_ record: KafkaRecord) {
    guard let value = record.value else { return nil }
    var (taskID, type, task): (UniqueID?, String?, TaskTraits?)
    let known: Void? = try? JSONReader.read(value, limit: .max) { reader throws(DecodingFailure) in
      try reader.object { reader, name throws(DecodingFailure) in
        switch name {
        case "taskId": taskID = try reader.uuid()
        case "type": type = try reader.string(limit: 64)
        case "task": task = try TaskTraits(from: &reader)
        default: try reader.skip()
        }
      }
    }
    guard known != nil, let taskID, let type else { return nil }
    partition = Int(record.partition)
    offset = record.offset
    timestamp = record.timestamp ?? 0
    json = Self.line(value)
    (self.taskID, self.type, self.task) = (taskID, type, task)
  }

  /// The same JSON without the line breaks that may be between its parts: they would end an event of the stream.
  static func line(_ json: [UInt8]) -> [UInt8] {
    json.contains { $0 == 0x0A || $0 == 0x0D } ? json.map { $0 < 0x20 ? 0x20 : $0 } : json
  }
}

/// The fields of a task's document that events are filtered by.
struct TaskTraits: Hashable, Sendable {
  var queue: String
  var kind: String
  var state: String

  init(queue: String, kind: String, state: String) {
    (self.queue, self.kind, self.state) = (queue, kind, state)
  }

  fileprivate init(from reader: inout JSONReader) throws(DecodingFailure) {
    var (queue, kind, state) = ("", "", "")
    try reader.object { reader, name throws(DecodingFailure) in
      switch name {
      case "queue": queue = try reader.string()
      case "kind": kind = try reader.string()
      case "state": state = try reader.string()
      default: try reader.skip()
      }
    }
    (self.queue, self.kind, self.state) = (queue, kind, state)
  }
}
