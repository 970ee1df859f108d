import ReelhaulKafka

/// The part of a Kafka producer that a worker needs.
package protocol MessageSink: Sendable {
  /// Writes the messages in order. When each is acknowledged or has failed, returns the errors of those that have, by
  /// their places.
  func failures(writing messages: [KafkaMessage]) async -> [Int: KafkaError]
  /// Writes a message soon, or drops it.
  func offer(_ message: KafkaMessage)
  /// How many offered messages were dropped or not acknowledged.
  var dropped: Int { get }
}

extension KafkaProducer: MessageSink {
  package func failures(writing messages: [KafkaMessage]) async -> [Int: KafkaError] {
    let deliveries = await deliver(messages)
    return Dictionary(
      uniqueKeysWithValues: deliveries.failures.compactMap { index in
        guard case .failure(let error) = deliveries[index] else { return nil }
        return (index, error)
      })
  }
}

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
