import Kafka
import System
import Worker

/// Keeps what is produced.
final class RecordingSink: MessageSink {
  private let messages = Lock<[KafkaMessage]>([])

  func sendAll(_ messages: [KafkaMessage]) async throws {
    self.messages.withLock { $0 += messages }
  }

  func offer(_ message: KafkaMessage) {
    messages.withLock { $0.append(message) }
  }

  func messages(to topic: String) -> [KafkaMessage] {
    messages.withLock { $0.filter { $0.topic == topic } }
  }
}
