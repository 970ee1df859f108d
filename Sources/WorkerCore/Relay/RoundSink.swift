import ReelhaulKafka

/// Publishes the rounds of the relay's leader.
package protocol RoundSink: Sendable {
  /// Fences all earlier leaders: messages that they have not published by now are refused.
  func fence(within limit: Duration) async throws
  /// Writes the messages in order, all or none, and returns once they are published. After a fatal ``KafkaError`` they
  /// may be published, and nothing more is accepted before the next ``fence(within:)``.
  func publish(_ messages: some Sequence<KafkaMessage> & Sendable, within limit: Duration) async throws
}

extension TransactionalProducer: RoundSink {}
