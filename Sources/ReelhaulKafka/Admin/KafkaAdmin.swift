import ReelhaulSystem

/// Inspects a cluster and creates topics.
package final class KafkaAdmin: Sendable {
  private let operations: AdminOperations
  private let client: BlockingClient

  /// Does not connect. `timeout` limits each request. A failed request is repeated if the failure may pass: for up to
  /// `patience`, once the cluster has answered.
  package init(
    _ configuration: KafkaConfiguration, timeout: Duration = .seconds(10), patience: Duration = .seconds(60)
  ) throws(KafkaError) {
    client = BlockingClient(try KafkaHandle(.producer, configuration), name: "kafka-admin")
    operations = AdminOperations(
      handle: client.handle, milliseconds: Int32(clamping: timeout.milliseconds), patience: patience)
  }

  /// Lends `body` an admin, which is closed when `body` ends.
  package static func with<Result: Sendable>(
    _ configuration: KafkaConfiguration, timeout: Duration = .seconds(10), patience: Duration = .seconds(60),
    _ body: @Sendable (KafkaAdmin) async throws -> Result
  ) async throws -> Result {
    let admin = try KafkaAdmin(configuration, timeout: timeout, patience: patience)
    let outcome: Swift.Result<Result, any Error>
    do {
      outcome = .success(try await body(admin))
    } catch {
      outcome = .failure(error)
    }
    await admin.close()
    return try outcome.get()
  }

  /// The brokers and topics. Throws a retryable error if no broker answers in time.
  package func metadata() async throws(KafkaError) -> ClusterMetadata {
    try await client.run { [operations] () throws(KafkaError) in try operations.metadata() }
  }

  /// Creates the missing topics, and reports how the others differ from the plan. `created` has those that this call
  /// created: another process may have been first. A broker without the admin protocol creates them with its own number
  /// of partitions, and reports neither its settings nor who was first.
  package func ensureTopics(
    _ topics: [TopicSpec]
  ) async throws(KafkaError) -> (created: Set<String>, differences: [TopicDifference]) {
    try await client.run { [operations] () throws(KafkaError) in try operations.ensure(topics) }
  }

  /// How existing topics differ from the plan. Changes nothing. A broker without the admin protocol does not report
  /// its settings.
  package func differences(_ topics: [TopicSpec]) async throws(KafkaError) -> [TopicDifference] {
    try await client.run { [operations] () throws(KafkaError) in try operations.differences(topics) }
  }

  package func close() async {
    await client.close()
  }
}
