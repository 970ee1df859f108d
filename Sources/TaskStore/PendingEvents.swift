import TaskCore

/// One row of the outbox: the events of one statement.
package struct OutboxBatch: Sendable {
  package var row: Int64
  package var kind: TaskEvent.Kind
  package var at: Timestamp
  /// The tasks, and the numbers of their events.
  package var events: [(task: UniqueID, sequence: Int)]
  /// Who asked for them, if a command did and told.
  package var actor: String?

  package init(
    row: Int64, kind: TaskEvent.Kind, at: Timestamp, events: [(task: UniqueID, sequence: Int)], actor: String? = nil
  ) {
    self.row = row
    self.kind = kind
    self.at = at
    self.events = events
    self.actor = actor
  }
}

/// Events to publish, and the tasks that they belong to.
package struct PendingEvents: Sendable {
  /// In the order of their rows.
  package var batches: [OutboxBatch]
  /// The tasks of the events, as they were when the batches were read or later. Removed tasks are missing.
  package var tasks: [UniqueID: TaskDocument]
  /// The specifications of removed tasks, at least of those with a web hook.
  package var removed: [UniqueID: TaskSpec] = [:]
  /// Whether the last batch has only the first events of its row.
  private var isCut = false
  /// Whether more events wait than the store returns at once, whatever the limit of rows.
  package var hasMore = false

  package init(batches: [OutboxBatch] = [], tasks: [UniqueID: TaskDocument] = [:]) {
    self.batches = batches
    self.tasks = tasks
  }

  package var eventCount: Int { batches.reduce(0) { $0 + $1.events.count } }

  /// The rows of which all events are included.
  package var wholeRows: [Int64] { (isCut ? batches.dropLast() : batches[...]).map(\.row) }

  /// The first events of the row after ``wholeRows``, if its other events were cut off; otherwise nil.
  package var cutBatch: OutboxBatch? { isCut ? batches.last : nil }

  /// Keeps the first events, as many as come to `bytes` with their tasks, and at least one. `size` is that of a task in
  /// bytes; nil where it is not known: there it ends.
  package mutating func cut(to bytes: Int, size: (UniqueID) -> Int?) {
    var left = bytes
    for (index, batch) in batches.enumerated() {
      for (place, event) in batch.events.enumerated() {
        let isFirst = index == 0 && place == 0
        guard let size = size(event.task), isFirst || left >= size else {
          (isCut, hasMore) = (place > 0, true)
          batches[index].events.removeSubrange(place...)
          batches.removeSubrange((isCut ? index + 1 : index)...)
          return
        }
        left -= size
      }
    }
  }
}
