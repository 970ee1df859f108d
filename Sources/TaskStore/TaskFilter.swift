import TaskCore

/// Which tasks to list; nil: all.
package struct TaskFilter: Hashable, Sendable {
  /// ``TaskStatus/queued`` means all that are queued, whatever they wait for.
  package var state: TaskStatus?
  package var queue: String?
  /// 1…10,000.
  package var limit: Int

  package init(state: TaskStatus? = nil, queue: String? = nil, limit: Int = 100) {
    self.state = state
    self.queue = queue
    self.limit = limit
  }
}
