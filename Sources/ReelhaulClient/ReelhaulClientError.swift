import ReelhaulKafka

/// Why commands did not reach the fleet's topic.
public struct ReelhaulClientError: Error, Hashable, Sendable, CustomStringConvertible {
  /// librdkafka's name of the cause, such as `_MSG_TIMED_OUT`. The set is bounded.
  public let name: String
  public let description: String
  /// The same call may succeed later.
  public let isRetryable: Bool
  /// The client will never work again. Make a new one.
  public let isFatal: Bool
  /// Indices of the commands that were not acknowledged. They may still have arrived. Sending them again with
  /// the same ids is safe.
  public let failures: [Int]

  init(_ error: KafkaError, failures: [Int] = []) {
    name = error.name
    description = error.description
    isRetryable = error.isRetriable
    isFatal = error.isFatal
    self.failures = failures
  }
}
