import System

/// Looks at a cluster and makes topics.
package final class KafkaAdmin: Sendable {
  private let operations: AdminOperations
  private let pool: BlockingPool
  private let isClosed = Lock(false)

  /// Does not connect. `timeout` bounds each request. What fails is tried again where that may pass: in a cluster that has
  /// answered before, for up to `patience`.
  package init(
    _ configuration: KafkaConfiguration, timeout: Duration = .seconds(10), patience: Duration = .seconds(60)
  ) throws(KafkaError) {
    operations = AdminOperations(
      handle: try KafkaHandle(.producer, configuration), milliseconds: Int32(clamping: timeout.milliseconds),
      patience: patience)
    pool = BlockingPool(name: "kafka-admin", threads: 1)
  }

  deinit {
    _ = end()
  }

  /// Brokers and topics: the answer to "is it there". Throws a retriable error when no broker answers in time.
  package func metadata() async throws(KafkaError) -> ClusterMetadata {
    try await run { operations throws(KafkaError) in try operations.metadata() }
  }

  /// Creates the topics that are missing, and reports how the others differ from the plan. A broker without the admin
  /// protocol creates them with its own number of partitions, and does not tell its settings.
  package func ensureTopics(_ topics: [TopicSpec]) async throws(KafkaError) -> [TopicDifference] {
    try await run { operations throws(KafkaError) in try operations.ensure(topics) }
  }

  /// How existing topics differ from the plan; changes nothing. A broker without the admin protocol does not tell its
  /// settings.
  package func differences(_ topics: [TopicSpec]) async throws(KafkaError) -> [TopicDifference] {
    try await run { operations throws(KafkaError) in try operations.differences(topics) }
  }

  package func close() async {
    await end()?.ended()
  }

  /// Frees the client once no call is under way; nil where that has begun.
  private func end() -> PollThread? {
    let isFirst = isClosed.withLock { isClosed in
      defer { isClosed = true }
      return !isClosed
    }
    guard isFirst else { return nil }
    return PollThread(name: "kafka-admin-end") { [operations, pool] in
      pool.shutdown()
      operations.handle.destroy()
    }
  }

  private func run<Result: Sendable>(
    _ body: @escaping @Sendable (AdminOperations) throws(KafkaError) -> Result
  ) async throws(KafkaError) -> Result {
    let operations = operations
    do {
      return try await pool.run { try body(operations) }
    } catch let error as KafkaError {
      throw error
    } catch {
      throw .closed("the admin client")
    }
  }
}
