import TaskCore

/// One row of the outbox: the events of one statement.
package struct OutboxBatch: Sendable {
  package var row: Int64
  package var events: [TaskEvent]

  package init(row: Int64, events: [TaskEvent]) {
    self.row = row
    self.events = events
  }
}
