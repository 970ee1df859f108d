import TaskCore

/// Events that are to be published, and what they tell of.
package struct PendingEvents: Sendable {
  /// In the order of their rows.
  package var batches: [OutboxBatch]
  /// The tasks of the events, as they were when the batches were read or later; those that were removed are not here.
  package var tasks: [UUID: TaskDocument]

  package init(batches: [OutboxBatch], tasks: [UUID: TaskDocument]) {
    self.batches = batches
    self.tasks = tasks
  }
}
