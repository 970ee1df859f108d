import CReelhaulKafka
import ReelhaulSystem

/// The blocking part of ``TransactionalProducer``: one transactional librdkafka client, from its creation to
/// ``drop()``.
// @unchecked: only one caller at a time uses it.
final class TransactionalClient: @unchecked Sendable {
  /// What librdkafka's error of a transaction does not say, as the thread learns it.
  private struct Causes {
    /// Of the present transaction's first message that was not delivered.
    var undelivered: KafkaError?
    /// Of the whole client.
    var trouble: KafkaError?
  }

  private let handle: KafkaHandle
  private let causes: Lock<Causes>
  private let stopper: StoppableHandle
  /// Handles the delivery reports, for which a commit waits.
  private let thread: PollThread
  private var topics: TopicHandles?

  init(_ configuration: KafkaConfiguration, id: String, milliseconds: Int) throws(KafkaError) {
    let timeout = String(milliseconds)
    // A commit sends lingering messages at once.
    let handle = try KafkaHandle(
      .producer, configuration, defaults: KafkaHandle.producing(.init(), linger: 50),
      required: [
        "transactional.id": id, "enable.idempotence": "true", "acks": "all", "transaction.timeout.ms": timeout,
        // librdkafka requires that both are not longer than the transaction's timeout.
        "message.timeout.ms": timeout, "socket.timeout.ms": timeout,
      ])
    let stopper = StoppableHandle(handle)
    let causes = Lock(Causes())
    self.handle = handle
    self.causes = causes
    self.stopper = stopper
    topics = TopicHandles(client: handle.raw)
    thread = PollThread(name: "kafka-transactions") {
      while !stopper.isStopping {
        if let event = handle.poll(milliseconds: 1000) { Self.take(event, handle, causes) }
      }
      handle.destroy()
    }
  }

  private static func take(_ event: borrowing KafkaEvent, _ handle: KafkaHandle, _ causes: Lock<Causes>) {
    var undelivered: KafkaError?
    if event.type == RD_KAFKA_EVENT_DR {
      event.forEachMessage { message in
        guard message.pointee.err != RD_KAFKA_RESP_ERR_NO_ERROR else { return handle.recovered() }
        let topic = String(cString: rd_kafka_topic_name(message.pointee.rkt))
        undelivered = undelivered ?? KafkaError(message.pointee.err, "a message for \(topic) was not acknowledged")
      }
    } else {
      _ = handle.observe(event)
    }
    causes.withLock { causes in
      causes.undelivered = causes.undelivered ?? undelivered
      causes.trouble = handle.trouble
    }
  }

  /// Must be called once, before all other calls.
  func fence(by deadline: BootInstant) throws(KafkaError) {
    try check(rd_kafka_init_transactions(handle.raw, deadline.millisecondsLeft), "earlier producers cannot be fenced")
  }

  /// Begins a transaction with the messages.
  func write(_ messages: some Sequence<KafkaMessage>, by deadline: BootInstant) throws(KafkaError) {
    causes.withLock { $0.undelivered = nil }
    try check(rd_kafka_begin_transaction(handle.raw), "no transaction can begin")
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

  func commit(by deadline: BootInstant) throws(KafkaError) {
    try check(rd_kafka_commit_transaction(handle.raw, deadline.millisecondsLeft), "the transaction is not committed")
  }

  /// Throws if there is nothing to abort, as after a commit with an unknown outcome. The client cannot be used after
  /// that.
  func abort(by deadline: BootInstant) throws(KafkaError) {
    try check(rd_kafka_abort_transaction(handle.raw, deadline.millisecondsLeft), "the transaction is not aborted")
  }

  /// Ends the client, without waiting; returns the thread that frees it. An open transaction is aborted by the cluster.
  @discardableResult
  func drop() -> PollThread {
    topics = nil
    stopper.stop()
    return thread
  }

  private func check(_ error: OpaquePointer?, _ context: String) throws(KafkaError) {
    guard let error else { return }
    var failure = KafkaError(consuming: error, context)
    let causes = causes.withLock { $0 }
    if failure.code == .inconsistent, let undelivered = causes.undelivered {
      failure = KafkaError(
        code: undelivered.code, message: "\(context): \(undelivered.message)", isFatal: failure.isFatal,
        isRetryable: failure.isRetryable)
    } else if failure.code == .timedOut {
      // librdkafka's own text is advice for programmers.
      failure.message = "\(context): Kafka did not answer in time"
    }
    throw failure.because(of: causes.trouble)
  }
}
