import ReelhaulKafka

extension KafkaProducer {
  /// Writes one record and waits until it is acknowledged.
  @discardableResult
  package func send(
    topic: String, key: [UInt8]?, value: [UInt8]?, headers: [KafkaHeader] = []
  ) async throws(KafkaError) -> Delivery {
    try await deliver([KafkaMessage(topic: topic, key: key, value: value, headers: headers)])[0].get()
  }

  /// Writes the messages in order, and returns when all are acknowledged. Throws the first failure; the others may
  /// have been written.
  package func sendAll(_ messages: [KafkaMessage]) async throws(KafkaError) {
    let deliveries = await deliver(messages)
    if let first = deliveries.failures.first { _ = try deliveries[first].get() }
  }
}
