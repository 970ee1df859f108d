import ReelhaulKafka
import ReelhaulMessages
import ReelhaulSystem
import TaskCore

/// Writes commands as Kafka messages with CloudEvents headers. All have the same source and time.
struct CommandMessages {
  private let topic: String
  private let event: CloudEvent
  /// The headers of the previous command. Most commands are followed by one of the same type.
  private var last: (type: String, headers: [KafkaHeader]) = ("", [])

  init(topic: String, source: String) {
    self.topic = topic
    event = CloudEvent(source: source, time: Timestamp(microseconds: Clocks.realtimeMicroseconds()))
  }

  mutating func message(_ command: Command) -> KafkaMessage {
    let key = command.taskID.utf8
    var headers = headers(of: command.eventType)
    headers.append(KafkaHeader("ce_id", command.id.utf8))
    if case .submit(let spec) = command, let trace = spec.trace {
      headers += trace.headers.map { KafkaHeader($0.name, $0.value) }
    }
    return KafkaMessage(topic: topic, key: key, value: CommandJSON.encode(command), headers: headers)
  }

  private mutating func headers(of type: String) -> [KafkaHeader] {
    if type != last.type { last = (type, event.headers(type: type).map { KafkaHeader($0.name, $0.value) }) }
    return last.headers
  }
}
