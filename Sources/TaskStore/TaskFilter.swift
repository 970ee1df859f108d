import TaskCore

/// Selects the tasks to list. Nil selects every state, or every queue.
package struct TaskFilter: Hashable, Sendable {
  /// ``TaskStatus/queued`` selects all queued tasks, whatever they wait for.
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
