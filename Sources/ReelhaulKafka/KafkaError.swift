import CReelhaulKafka

/// An error of Kafka or librdkafka, with what a caller must know: whether the client is lost, and whether to try
/// again.
package struct KafkaError: Error, Hashable, Sendable {
  /// An error code. Negative ones are librdkafka's own, the others belong to the protocol. The set is open.
  package struct Code: RawRepresentable, Hashable, Sendable {
    package let rawValue: Int32
    package init(rawValue: Int32) { self.rawValue = rawValue }
    init(_ code: rd_kafka_resp_err_t) { rawValue = code.rawValue }

    /// The client was closed before the work was done.
    package static let closed = Code(RD_KAFKA_RESP_ERR__DESTROY)
    package static let timedOut = Code(RD_KAFKA_RESP_ERR__TIMED_OUT)
    package static let messageTooLarge = Code(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
    package static let allBrokersDown = Code(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
    package static let tls = Code(RD_KAFKA_RESP_ERR__SSL)
    package static let transport = Code(RD_KAFKA_RESP_ERR__TRANSPORT)
    package static let invalidArgument = Code(RD_KAFKA_RESP_ERR__INVALID_ARG)
    /// Another producer with the same `transactional.id` has started.
    package static let fenced = Code(RD_KAFKA_RESP_ERR__FENCED)
    package static let fatal = Code(RD_KAFKA_RESP_ERR__FATAL)
    /// A transaction cannot be committed, because a message of it was not delivered.
    static let inconsistent = Code(RD_KAFKA_RESP_ERR__INCONSISTENT)
    static let none = Code(RD_KAFKA_RESP_ERR_NO_ERROR)
  }

  package let code: Code
  /// One line for people. It never contains values of the configuration.
  package internal(set) var message: String
  /// The client will never work again. Close it and make a new one.
  package let isFatal: Bool
  /// The same request may succeed later.
  package let isRetryable: Bool

  /// librdkafka's name of the code (`_TIMED_OUT`, `NOT_LEADER_FOR_PARTITION`). The set is bounded, so it is suitable
  /// for metrics.
  package var name: String { String(cString: rd_kafka_err2name(rd_kafka_resp_err_t(rawValue: code.rawValue))) }

  package init(code: Code, message: String, isFatal: Bool = false, isRetryable: Bool? = nil) {
    self.code = code
    self.message = message
    self.isFatal = isFatal
    self.isRetryable = isRetryable ?? (!isFatal && Self.retryable.contains(code))
  }

  init(_ code: rd_kafka_resp_err_t, _ context: String? = nil, isFatal: Bool = false) {
    var text = String(cString: rd_kafka_err2str(code))
    if code == RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP { text += ": the clock of this machine differs from Kafka's" }
    self.init(code: Code(code), message: context.map { "\($0): \(text)" } ?? text, isFatal: isFatal)
  }

  /// Takes ownership of `error` and frees it.
  init(consuming error: OpaquePointer, _ context: String) {
    defer { rd_kafka_error_destroy(error) }
    self.init(
      code: Code(rd_kafka_error_code(error)), message: "\(context): \(String(cString: rd_kafka_error_string(error)))",
      isFatal: rd_kafka_error_is_fatal(error) != 0,
      isRetryable: rd_kafka_error_is_retriable(error) != 0 ? true : nil)
  }

  /// The same error with `trouble` as its cause, if the error itself only says that nobody answered.
  func because(of trouble: KafkaError?) -> KafkaError {
    guard let trouble, Self.silences.contains(code) else { return self }
    return KafkaError(code: code, message: "\(message): \(trouble.message)", isFatal: isFatal, isRetryable: isRetryable)
  }

  /// How informative an error of librdkafka is: "all brokers are down" says less than a broken connection, and that
  /// says less than the reason of a refusal.
  var tells: Int {
    switch code {
    case .allBrokersDown: 0
    case .transport: 1
    default: 2
    }
  }

  /// Whether it ends a producer, in whose place another one can do the same.
  package var endsProducer: Bool { isFatal || Self.ofProducers.contains(code) }

  /// Whether this user may not read a topic, or not write to it.
  package var isTopicRefusal: Bool { code == Code(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED) }

  /// Whether records are there and cannot be read.
  package var isOfRecords: Bool { Self.ofRecords.contains(code) }

  private static let ofProducers: Set<Code> = Set(
    [
      RD_KAFKA_RESP_ERR__FATAL, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID,
      RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH,
    ].map { Code($0) })

  private static let ofRecords: Set<Code> = Set(
    [
      RD_KAFKA_RESP_ERR__BAD_MSG, RD_KAFKA_RESP_ERR__BAD_COMPRESSION, RD_KAFKA_RESP_ERR_INVALID_MSG,
      RD_KAFKA_RESP_ERR_UNKNOWN,
    ].map { Code($0) })

  /// Whether somebody must act, because the error will not pass.
  package var isRefusal: Bool { Self.refusals.contains(code) }

  /// Whether it may be because of a certificate, of this side or the other.
  package var isOfTLS: Bool { code == .tls || code == Code(RD_KAFKA_RESP_ERR__AUTHENTICATION) }

  private static let refusals: Set<Code> = Set(
    [
      RD_KAFKA_RESP_ERR__AUTHENTICATION, RD_KAFKA_RESP_ERR__SSL, RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED,
      RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
      RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED,
      RD_KAFKA_RESP_ERR_INVALID_GROUP_ID, RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT,
      RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL, RD_KAFKA_RESP_ERR_GROUP_MAX_SIZE_REACHED,
      RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION, RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP,
    ].map { Code($0) })

  private static let silences: Set<Code> = Set(
    [
      RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR__TIMED_OUT, RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE,
      RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN,
    ].map { Code($0) })

  /// Kafka does not distinguish a topic that is not there from one that the user may not see.
  static func missing(_ topic: String) -> KafkaError {
    KafkaError(
      code: Code(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART),
      message: "there is no topic \(topic), or this user may not see it", isRetryable: false)
  }

  package static func closed(_ what: String) -> KafkaError {
    KafkaError(code: .closed, message: "\(what) was closed", isRetryable: false)
  }

  /// After these codes the same request may succeed: the network failed, or a broker or a coordinator is moving.
  private static let retryable: Set<Code> = Set(
    [
      RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR__RESOLVE, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN,
      RD_KAFKA_RESP_ERR__TIMED_OUT, RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT,
      RD_KAFKA_RESP_ERR__QUEUE_FULL, RD_KAFKA_RESP_ERR__WAIT_COORD, RD_KAFKA_RESP_ERR__PURGE_QUEUE,
      RD_KAFKA_RESP_ERR__PURGE_INFLIGHT,
      RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC,
      RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
      RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
      RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE,
      RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
      RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
      RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
      RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS, RD_KAFKA_RESP_ERR_NOT_CONTROLLER,
      RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED,
    ].map { Code($0) })
}

extension KafkaError: CustomStringConvertible {
  package var description: String { "\(message) (\(name)\(isFatal ? ", fatal" : ""))" }
}
