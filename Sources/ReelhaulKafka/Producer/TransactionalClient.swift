import CReelhaulKafka

/// The blocking part of ``TransactionalProducer``: one transactional librdkafka client, from its creation to
/// ``drop()``.
// @unchecked: handed from one caller to the next, never used by two at once.
final class TransactionalClient: @unchecked Sendable {
  private let handle: KafkaHandle
  private let stopper: StoppableHandle
  /// Takes the delivery reports. A commit waits for them.
  private let thread: PollThread
  private var topics: TopicHandles?

  init(_ configuration: KafkaConfiguration, id: String, milliseconds: Int) throws(KafkaError) {
    let timeout = String(milliseconds)
    // A commit sends all lingering messages.
    let handle = try KafkaHandle(
      .producer, configuration, defaults: KafkaHandle.producing(.init(), linger: 50),
      required: [
        "transactional.id": id, "enable.idempotence": "true", "acks": "all", "transaction.timeout.ms": timeout,
        // librdkafka requires both to be within the timeout of the transaction.
        "message.timeout.ms": timeout, "socket.timeout.ms": timeout,
      ])
    let stopper = StoppableHandle(handle)
    self.handle = handle
    self.stopper = stopper
    topics = TopicHandles(client: handle.raw)
    thread = PollThread(name: "kafka-transactions") {
      while !stopper.isStopping {
        if let event = handle.poll(milliseconds: 1000) { _ = handle.observe(event) }
      }
      handle.destroy()
    }
  }

  /// Call it once, before anything else.
  func fence(by deadline: Deadline) throws(KafkaError) {
    try check(rd_kafka_init_transactions(handle.raw, deadline.remaining), "earlier producers cannot be fenced")
  }

  /// Begins a transaction with the messages.
  func write(_ messages: some Sequence<KafkaMessage>, by deadline: Deadline) throws(KafkaError) {
    try check(rd_kafka_begin_transaction(handle.raw), "the transaction cannot begin")
    for message in messages {
      var code = produce(message)
      while code == RD_KAFKA_RESP_ERR__QUEUE_FULL, !deadline.hasPassed {
        handle.rest(milliseconds: 5)
        code = produce(message)
      }
      guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(code, "message was not written") }
    }
  }

  private func produce(_ message: KafkaMessage) -> rd_kafka_resp_err_t {
    topics?.produce(message) ?? RD_KAFKA_RESP_ERR__DESTROY
  }

  func commit(by deadline: Deadline) throws(KafkaError) {
    try check(rd_kafka_commit_transaction(handle.raw, deadline.remaining), "the transaction cannot be committed")
  }

  /// Throws if there is nothing to abort, for example after a commit with an unknown outcome. Then the client is
  /// useless.
  func abort(by deadline: Deadline) throws(KafkaError) {
    try check(rd_kafka_abort_transaction(handle.raw, deadline.remaining), "the transaction cannot be aborted")
  }

  /// Ends the client without waiting, and returns the thread that frees it. The cluster aborts an open transaction.
  @discardableResult
  func drop() -> PollThread {
    topics = nil
    stopper.stop()
    return thread
  }

  private func check(_ error: OpaquePointer?, _ context: String) throws(KafkaError) {
    if let error { throw KafkaError(consuming: error, context) }
  }
}
