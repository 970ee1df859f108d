import ReelhaulKafka

/// The part of a Kafka producer that a worker needs.
package protocol MessageSink: Sendable {
  /// Writes the messages in order, and returns when all are acknowledged.
  func sendAll(_ messages: [KafkaMessage]) async throws
  /// Writes a message soon, or drops it.
  func offer(_ message: KafkaMessage)
}

extension KafkaProducer: MessageSink {}

/// The connection with which the leader of the relay publishes.
package protocol RoundSink: Sendable {
  /// Fences earlier leaders: after this call, no message of them can be published.
  func fence(within limit: Duration) async throws
  /// Writes all messages in order, or none, and returns once they are committed. After a fatal ``KafkaError`` it is
  /// unknown whether they are, and the sink accepts no more messages before the next ``fence(within:)``. After
  /// `messageTooLarge` they are not committed, and a fence must come first, too.
  func publish(_ messages: some Sequence<KafkaMessage> & Sendable, within limit: Duration) async throws
}

extension TransactionalProducer: RoundSink {}
