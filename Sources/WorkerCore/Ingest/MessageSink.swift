import ReelhaulKafka

/// The part of a Kafka producer that a worker needs.
package protocol MessageSink: Sendable {
  /// Writes the messages in order, and returns when all are acknowledged.
  func sendAll(_ messages: [KafkaMessage]) async throws
  /// Writes a message soon, or drops it.
  func offer(_ message: KafkaMessage)
}

extension KafkaProducer: MessageSink {}
