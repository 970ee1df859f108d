import ReelhaulKafka

/// The part of a Kafka producer that a worker needs.
package protocol MessageSink: Sendable {
  /// Writes the messages in order, and returns when all are acknowledged.
  func sendAll(_ messages: [KafkaMessage]) async throws
  /// Writes a message soon, or drops it.
  func offer(_ message: KafkaMessage)
}

extension KafkaProducer: MessageSink {}

/// Where the leader of the relay publishes.
package protocol RoundSink: Sendable {
  /// Shuts out whoever led before: what they have not published by now, they never will.
  func fence(within limit: Duration) async throws
  /// Writes the messages in order, all or none, and returns once they are there. After a fatal ``KafkaError`` they may
  /// be, and nothing more is taken before the next ``fence(within:)``.
  func publish(_ messages: some Sequence<KafkaMessage> & Sendable, within limit: Duration) async throws
}

extension TransactionalProducer: RoundSink {}
