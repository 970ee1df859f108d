import TaskCore

/// How many tasks of a queue and a kind are in one state now.
package struct TaskCount: Hashable, Sendable {
  package var state: TaskState
  package var queue: String
  package var kind: TaskKind
  package var tasks: Int

  package init(state: TaskState, queue: String, kind: TaskKind, tasks: Int) {
    self.state = state
    self.queue = queue
    self.kind = kind
    self.tasks = tasks
  }
}

/// How many tasks of a queue came to one end.
package struct SettledCount: Hashable, Sendable {
  package var queue: String
  /// ``TaskState/succeeded``, ``TaskState/canceled`` or ``TaskState/failed``.
  package var outcome: TaskState
  package var tasks: Int
  /// Of those that succeeded.
  package var bytes: Int64

  package init(queue: String, outcome: TaskState, tasks: Int, bytes: Int64) {
    self.queue = queue
    self.outcome = outcome
    self.tasks = tasks
    self.bytes = bytes
  }
}

/// Tells how many tasks there are. The numbers are maintained with every change and exact, and reading them takes as long
/// with ten tasks as with ten million.
package protocol TaskCounter: Sendable {
  /// A count for each state, queue and kind that has tasks. A former name of a kind counts as the kind.
  func taskCounts() async throws -> [TaskCount]
  /// What ended since midnight, UTC. A task that ended twice counts twice; one that was removed since stays counted.
  func settledToday() async throws -> [SettledCount]
}
