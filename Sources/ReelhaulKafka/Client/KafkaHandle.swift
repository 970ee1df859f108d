import CReelhaulKafka
import ReelhaulSystem

/// The only owner of an `rd_kafka_t` and of its queue. All reports of librdkafka arrive through this queue:
/// deliveries, records, rebalances, commits, errors, logs and statistics. There are no C callbacks, so no contexts
/// must be kept alive.
///
/// Only one thread at a time, the owner's poll thread, calls ``poll(milliseconds:)``. After it has ended, one thread
/// calls ``destroy()``.
// @unchecked: an `rd_kafka_t` is thread-safe; the rules above say who may call what.
final class KafkaHandle: @unchecked Sendable {
  enum Role {
    case producer
    /// A member of a consumer group.
    case member
    /// A consumer with assigned partitions and without a group.
    case reader
  }

  let raw: OpaquePointer
  private let queue: OpaquePointer
  /// Nothing is ever put on this queue, so waiting on it means waiting for ``wake()``.
  private let silence: OpaquePointer
  private let observer: KafkaObserver
  private let bootstrap: String
  /// The last problem that librdkafka reported since the cluster answered: it explains why a request gets no answer.
  /// Used only on the poll thread.
  private(set) var trouble: KafkaError?
  /// Whether the cluster has ever answered. Used only on the poll thread.
  private(set) var hasAnswered = false
  private var isDestroyed = false

  /// - Parameters:
  ///   - defaults: properties that `configuration` may override.
  ///   - required: properties that it may not override.
  init(
    _ role: Role, _ configuration: KafkaConfiguration, defaults: [String: String] = [:],
    required: [String: String] = [:]
  ) throws(KafkaError) {
    let conf = rd_kafka_conf_new()
    let common = [
      "client.id": "reelhaul", "log.connection.close": "false", "socket.keepalive.enable": "true",
      // Sends small requests and answers at once. Otherwise each waits up to 40 ms for the peer's delayed
      // acknowledgement.
      "socket.nagle.disable": "true",
    ]
    var own = required
    own["bootstrap.servers"] = configuration.bootstrap
    own["log.queue"] = "true"
    // This is a producer's property, but librdkafka also uses it as a lower bound for the fetches of a consumer.
    if role != .producer {
      own["message.max.bytes"] = configuration.properties["fetch.max.bytes"] ?? defaults["fetch.max.bytes"]
    }
    var reason = [CChar](repeating: 0, count: 512)
    // In this order: the value set last is used, whichever of its names a property has.
    for (name, value) in [common, defaults, configuration.properties, own].joined() {
      if rd_kafka_conf_set(conf, name, value, &reason, reason.count) == RD_KAFKA_CONF_OK { continue }
      rd_kafka_conf_destroy(conf)
      throw KafkaError(code: .invalidArgument, message: Self.text(reason))
    }
    rd_kafka_conf_set_events(
      conf,
      RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_FETCH | RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_OFFSET_COMMIT
        | RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_LOG | RD_KAFKA_EVENT_STATS)
    let type = role == .producer ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER
    // On success librdkafka owns the configuration.
    guard let raw = rd_kafka_new(type, conf, &reason, reason.count) else {
      rd_kafka_conf_destroy(conf)
      throw KafkaError(code: .invalidArgument, message: Self.text(reason), isRetryable: false)
    }
    self.raw = raw
    rd_kafka_set_log_queue(raw, nil)
    switch role {
    case .producer:
      queue = rd_kafka_queue_get_main(raw)
    case .member:
      rd_kafka_poll_set_consumer(raw)
      queue = rd_kafka_queue_get_consumer(raw)
    case .reader:
      queue = rd_kafka_queue_new(raw)
      let main = rd_kafka_queue_get_main(raw)
      rd_kafka_queue_forward(main, queue)
      rd_kafka_queue_destroy(main)
    }
    silence = rd_kafka_queue_new(raw)
    observer = configuration.observer
    bootstrap = configuration.bootstrap
  }

  deinit {
    precondition(isDestroyed, "a Kafka client was dropped by a thread that may not wait for its end")
  }

  /// The queue to which operations of this client send their answers.
  var answers: OpaquePointer { queue }

  /// The next event. Waits up to `milliseconds` for an event or for ``wake()``.
  func poll(milliseconds: Int32) -> KafkaEvent? {
    guard let event = rd_kafka_queue_poll(queue, milliseconds) else { return nil }
    return KafkaEvent(raw: event)
  }

  /// Waits for ``wake()``, without taking an event.
  func rest(milliseconds: Int32) {
    if let event = rd_kafka_queue_poll(silence, milliseconds) { rd_kafka_event_destroy(event) }
  }

  /// Ends the current wait of the poll thread, or else its next one. Any thread may call it before ``destroy()``.
  func wake() {
    rd_kafka_queue_yield(queue)
    rd_kafka_queue_yield(silence)
  }

  func notice(_ notice: KafkaNotice) {
    observer(notice)
  }

  /// Reports logs and errors to the observer. Returns the error if it is fatal.
  func observe(_ event: borrowing KafkaEvent) -> KafkaError? {
    switch event.type {
    case RD_KAFKA_EVENT_LOG:
      var facility: UnsafePointer<CChar>?
      var text: UnsafePointer<CChar>?
      var level: Int32 = 0
      if rd_kafka_event_log(event.raw, &facility, &text, &level) == 0, let facility, let text {
        observer(.log(level: Int(level), facility: String(cString: facility), text: String(cString: text)))
      }
    case RD_KAFKA_EVENT_ERROR:
      guard var error = event.error.map({ $0.isFatal ? fatalError ?? $0 : $0 }) else { return nil }
      if error.code == .allBrokersDown { error.message = "\(bootstrap): \(error.message)" }
      if error.tells >= trouble?.tells ?? 0 { trouble = error }
      observer(.error(error))
      return error.isFatal ? error : nil
    default: break
    }
    return nil
  }

  /// Notes that the cluster answers again.
  func recovered() {
    hasAnswered = true
    if trouble != nil { trouble = nil }
  }

  /// Calls `body` again after failures that may pass, until the deadline. The deadline is read again after each
  /// failure.
  func retrying<Result>(
    until deadline: @autoclosure () -> BootInstant, _ body: () throws(KafkaError) -> Result
  ) throws(KafkaError) -> Result {
    while true {
      do throws(KafkaError) {
        return try body()
      } catch {
        guard error.isRetryable, !deadline().hasPassed else { throw error }
        rest(milliseconds: 50)
      }
    }
  }

  /// Reports the waiting events, when only events that ``observe(_:)`` handles can come.
  func drain() {
    while let event = poll(milliseconds: 0) { _ = observe(event) }
  }

  private static func text(_ buffer: [CChar]) -> String {
    String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  /// The cause of a fatal error.
  private var fatalError: KafkaError? {
    var reason = [CChar](repeating: 0, count: 512)
    let code = rd_kafka_fatal_error(raw, &reason, reason.count)
    guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
    return KafkaError(code: KafkaError.Code(code), message: Self.text(reason), isFatal: true)
  }

  /// librdkafka before 2.3 aborts the process if a cooperative-sticky member is freed while it joins its group for the
  /// first time (its issue 4312).
  static let mayAbortJoining = rd_kafka_version() < 0x0203_0000

  /// Keeps the client until the process ends, instead of ``destroy()``.
  func abandon() {
    isDestroyed = true
  }

  /// Frees the client and waits for librdkafka's threads. Call it once, after the last ``wake()``. A group member that
  /// has not left its group does not try to leave.
  func destroy() {
    isDestroyed = true
    rd_kafka_queue_destroy(silence)
    rd_kafka_queue_destroy(queue)
    rd_kafka_destroy_flags(raw, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE)
  }
}
