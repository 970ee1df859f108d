import ReelhaulSystem

/// Looks at a cluster and makes topics.
package final class KafkaAdmin: Sendable {
  private let operations: AdminOperations
  private let client: BlockingClient

  /// Does not connect. `timeout` bounds each request. What fails is tried again where that may pass: in a cluster that has
  /// answered before, for up to `patience`.
  package init(
    _ configuration: KafkaConfiguration, timeout: Duration = .seconds(10), patience: Duration = .seconds(60)
  ) throws(KafkaError) {
    client = BlockingClient(try KafkaHandle(.producer, configuration), name: "kafka-admin")
    operations = AdminOperations(
      handle: client.handle, milliseconds: Int32(clamping: timeout.milliseconds), patience: patience)
  }

  /// Brokers and topics: the answer to "is it there". Throws a retriable error when no broker answers in time.
  package func metadata() async throws(KafkaError) -> ClusterMetadata {
    try await client.run { [operations] () throws(KafkaError) in try operations.metadata() }
  }

  /// Creates the topics that are missing, and reports how the others differ from the plan. A broker without the admin
  /// protocol creates them with its own number of partitions, and does not tell its settings.
  package func ensureTopics(_ topics: [TopicSpec]) async throws(KafkaError) -> [TopicDifference] {
    try await client.run { [operations] () throws(KafkaError) in try operations.ensure(topics) }
  }

  /// How existing topics differ from the plan; changes nothing. A broker without the admin protocol does not tell its
  /// settings.
  package func differences(_ topics: [TopicSpec]) async throws(KafkaError) -> [TopicDifference] {
    try await client.run { [operations] () throws(KafkaError) in try operations.differences(topics) }
  }

  package func close() async {
    await client.close()
  }
}
