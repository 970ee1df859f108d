import ReelhaulSystem

/// Writes records, and reports when the cluster has acknowledged them.
///
/// Safe from any task or thread. Every record sent before ``close(within:)`` gets a result: acknowledged or failed.
package final class KafkaProducer: Sendable {
  package enum Guarantee: Sendable {
    /// All in-sync replicas have the record. It is written once, in order. A broker that has forgotten the producer ends
    /// it: see ``KafkaProducer/hasFailed``.
    case everyReplica
    /// All in-sync replicas have the record. It may be written twice, and in another order.
    case everyReplicaMaybeTwice
    /// Only the partition's leader has the record. It may get lost or be written twice. For samples.
    case leader

    /// The properties on which it depends.
    package var properties: [String: String] {
      switch self {
      case .everyReplica: ["enable.idempotence": "true", "acks": "all"]
      case .everyReplicaMaybeTwice: ["enable.idempotence": "false", "acks": "all"]
      case .leader: ["enable.idempotence": "false", "acks": "1"]
      }
    }
  }

  /// The most that librdkafka may hold of one producer; further messages wait with their senders.
  package struct Window: Sendable {
    package var messages: Int
    /// Bytes.
    package var bytes: Int

    package init(messages: Int = 20_000, bytes: Int = 32 << 20) {
      self.messages = messages
      self.bytes = bytes
    }
  }

  private let worker: ProducerThread
  private let thread: PollThread

  /// Does not wait for the cluster. A message that is not acknowledged within `message.timeout.ms` (60 s by default)
  /// fails.
  package init(
    _ configuration: KafkaConfiguration, guarantee: Guarantee = .everyReplica, window: Window = Window()
  ) throws(KafkaError) {
    var defaults = KafkaHandle.producing(window, linger: guarantee == .leader ? 50 : 2)
    // As Java's producers: a batch of commands has to fit into its partition's part of what a consumer fetches at once.
    defaults["batch.size"] = "16384"
    let handle = try KafkaHandle(.producer, configuration, defaults: defaults, required: guarantee.properties)
    // Two names of one property; 0 is no limit.
    let timeout =
      ["delivery.timeout.ms", "message.timeout.ms"].compactMap { configuration.properties[$0] ?? defaults[$0] }
      .first.flatMap { Int($0) } ?? 0
    let worker = ProducerThread(handle, window: window, timeout: timeout > 0 ? .milliseconds(timeout) : nil)
    self.worker = worker
    thread = PollThread(name: "kafka-producer") { worker.run() }
  }

  deinit {
    worker.stop(by: .now)
  }

  /// Writes the messages in order, and returns the result of each.
  package func deliver(_ messages: [KafkaMessage]) async -> Deliveries {
    await enqueue(messages).value()
  }

  /// Writes the messages after all earlier ones, without waiting. The sender must limit the number of its pending
  /// messages.
  package func enqueue(_ messages: [KafkaMessage]) -> PendingDeliveries {
    let pending = PendingDeliveries()
    let batch = SendBatch(messages) { pending.settle($0) }
    if messages.isEmpty || !worker.add(batch) { batch.complete() }
    return pending
  }

  /// Writes a record soon, or drops it. It does not wait, keeps no order with other messages and reports no failure.
  package func offer(_ message: KafkaMessage) {
    worker.offer(message)
  }

  /// How many offered messages were dropped or not acknowledged.
  package var dropped: Int { worker.dropped }

  /// Whether there was a fatal error. No message is written after it.
  package var hasFailed: Bool { worker.hasFailed }

  /// Accepts no more messages, waits up to `timeout` for pending ones, fails the rest, and frees the client.
  package func close(within timeout: Duration = .seconds(10)) async {
    worker.stop(by: BootInstant.now + timeout)
    await thread.ended()
  }
}
