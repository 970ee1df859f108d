import Kafka
import Messages
import System
import TaskCore

/// Writes commands as Kafka messages with CloudEvents headers: of one source, at one time.
struct CommandMessages {
  private let topic: String
  private let event: CloudEvent

  init(topic: String, source: String) {
    self.topic = topic
    event = CloudEvent(source: source, time: Timestamp(microseconds: Clocks.realtimeMicroseconds()))
  }

  func message(_ command: Command) -> KafkaMessage {
    let key = command.taskID.utf8
    let id =
      switch command {
      case .submit: key
      case .control(let control): control.id.utf8
      }
    return KafkaMessage(
      topic: topic, key: key, value: CommandJSON.encode(command),
      headers: event.headers(id: id, type: command.eventType).map { KafkaHeader($0.name, $0.value) })
  }
}
