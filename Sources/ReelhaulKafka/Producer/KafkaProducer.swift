/// Writes records and reports when the cluster has them.
///
/// Safe from any task or thread. Every message sent before ``close(within:)`` gets an answer: acknowledged or failed.
package final class KafkaProducer: Sendable {
  package enum Guarantee: Sendable {
    /// Idempotent, with acknowledgement of all in-sync replicas: written once and in order.
    case everyReplica
    /// Only the partition's leader acknowledges. Records may be lost or doubled. For samples.
    case leader
  }

  /// The most messages and bytes that librdkafka may hold for one producer. Further messages wait with their senders.
  package struct Window: Sendable {
    package var messages: Int
    /// In bytes.
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
    let handle = try KafkaHandle(
      .producer, configuration,
      defaults: KafkaHandle.producing(window, linger: guarantee == .everyReplica ? 2 : 50),
      required: guarantee == .everyReplica
        ? ["enable.idempotence": "true", "acks": "all"] : ["enable.idempotence": "false", "acks": "1"])
    let worker = ProducerThread(handle, window: window)
    self.worker = worker
    thread = PollThread(name: "kafka-producer") { worker.run() }
  }

  deinit {
    worker.stop(by: .now())
  }

  /// Writes one record and waits until it is acknowledged.
  @discardableResult
  package func send(
    topic: String, key: [UInt8]?, value: [UInt8]?, headers: [KafkaHeader] = []
  ) async throws(KafkaError) -> Delivery {
    try await deliver([KafkaMessage(topic: topic, key: key, value: value, headers: headers)])[0].get()
  }

  /// Writes the messages in order, and returns when all are acknowledged. Throws the first failure; the other messages
  /// may have been written.
  package func sendAll(_ messages: [KafkaMessage]) async throws(KafkaError) {
    let deliveries = await deliver(messages)
    if let first = deliveries.failures.first { _ = try deliveries[first].get() }
  }

  /// Writes the messages in order, and returns the result of each.
  package func deliver(_ messages: [KafkaMessage]) async -> Deliveries {
    await enqueue(messages).value()
  }

  /// Enqueues the messages after all earlier ones, without waiting. The sender must bound the number of pending
  /// messages.
  package func enqueue(_ messages: [KafkaMessage]) -> PendingDeliveries {
    let pending = PendingDeliveries()
    let batch = SendBatch(messages) { pending.settle($0) }
    if messages.isEmpty || !worker.add(batch) { batch.complete() }
    return pending
  }

  /// Writes a record soon, or drops it. Does not wait, keeps no order with ``sendAll(_:)``, and reports no failure.
  package func offer(_ message: KafkaMessage) {
    worker.offer(message)
  }

  /// The number of offered messages that were dropped or not acknowledged.
  package var dropped: Int { worker.dropped }

  /// Accepts nothing more, waits up to `timeout` for pending messages, fails the rest, and frees the client.
  package func close(within timeout: Duration = .seconds(10)) async {
    worker.stop(by: .after(timeout))
    await thread.ended()
  }
}
