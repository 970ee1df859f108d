import Kafka
import System
import Worker

/// Keeps what is produced, and like a broker refuses values of more than 1 MiB.
final class RecordingSink: MessageSink {
  private let messages = Lock<[KafkaMessage]>([])

  func sendAll(_ messages: [KafkaMessage]) async throws {
    guard messages.allSatisfy({ $0.value?.count ?? 0 <= 1 << 20 }) else {
      throw KafkaError(code: .messageTooLarge, message: "too large")
    }
    self.messages.withLock { $0 += messages }
  }

  func offer(_ message: KafkaMessage) {
    messages.withLock { $0.append(message) }
  }

  func messages(to topic: String) -> [KafkaMessage] {
    messages.withLock { $0.filter { $0.topic == topic } }
  }
}
