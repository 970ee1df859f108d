import ReelhaulKafka

/// Why commands did not reach the fleet's topic.
public struct ReelhaulClientError: Error, Hashable, Sendable, CustomStringConvertible {
  /// librdkafka's name of the cause, such as `_MSG_TIMED_OUT`. The set is bounded.
  public var name: String { cause.name }
  public var description: String { cause.description }
  /// The same call may succeed later.
  public var isRetryable: Bool { cause.isRetryable || cause.endsProducer }
  /// The client was closed, and will never work again: make a new one. After every other error it can still be used.
  public var isFatal: Bool { cause.code == .closed }
  /// Indices of the commands that were not acknowledged. They may still have arrived. Sending them again with
  /// the same ids is safe.
  public var failures: [Int] { causes.keys.sorted() }
  /// Of the first one, if commands were not acknowledged.
  package let cause: KafkaError
  /// By the index of a command, why it was not acknowledged.
  package let causes: [Int: KafkaError]

  init(_ cause: KafkaError, causes: [Int: KafkaError] = [:]) {
    self.cause = cause
    self.causes = causes
  }
}
