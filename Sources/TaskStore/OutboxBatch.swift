import TaskCore

/// One row of the outbox: the events of one statement.
package struct OutboxBatch: Sendable {
  package var row: Int64
  package var kind: TaskEvent.Kind
  package var at: Timestamp
  /// Tasks and the numbers of their events.
  package var events: [(task: UniqueID, sequence: Int)]

  package init(row: Int64, kind: TaskEvent.Kind, at: Timestamp, events: [(task: UniqueID, sequence: Int)]) {
    self.row = row
    self.kind = kind
    self.at = at
    self.events = events
  }
}
