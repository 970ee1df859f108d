import TaskCore

/// Which tasks to list; nil: all.
package struct TaskFilter: Hashable, Sendable {
  package var state: TaskState?
  package var queue: String?
  /// 1…10,000.
  package var limit: Int

  package init(state: TaskState? = nil, queue: String? = nil, limit: Int = 100) {
    self.state = state
    self.queue = queue
    self.limit = limit
  }
}
