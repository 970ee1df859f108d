import TaskCore

/// A record of the `dead-letters` topic. The time tells records of a topic that was created again from the former ones.
package struct DeadLetterID: Hashable, Sendable {
  package var partition: Int32
  package var offset: Int64
  /// Milliseconds since 1970.
  package var timestamp: Int64

  package init(partition: Int32, offset: Int64, timestamp: Int64) {
    self.partition = partition
    self.offset = offset
    self.timestamp = timestamp
  }
}

package enum DeadLetterMark: String, Sendable {
  case replayed, dropped
}

/// Remembers what was done about dead letters: Kafka does not delete single records.
package protocol DeadLetterStore: Sendable {
  /// The last mark of a record holds.
  func mark(_ letter: DeadLetterID, _ mark: DeadLetterMark, actor: String?) async throws
  /// Those of `letters` that have a mark.
  func marks(of letters: [DeadLetterID]) async throws -> [DeadLetterID: DeadLetterMark]
}
