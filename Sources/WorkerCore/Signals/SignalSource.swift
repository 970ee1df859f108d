import ReelhaulKafka

/// The source of signals: a reader of all partitions, or a test's list.
package protocol SignalSource: Sendable {
  /// Waits for records; `nil` once the source is closed.
  func next() async throws -> [KafkaRecord]?
}
