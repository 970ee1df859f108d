import TaskCore
import TaskStore

extension PendingEvents {
  /// Every event, in order, with its task.
  package var events: [TaskEvent] {
    batches.flatMap { batch in
      batch.events.map { task, sequence in
        TaskEvent(
          taskID: task, sequence: sequence, kind: batch.kind, at: batch.at, actor: batch.actor, task: tasks[task])
      }
    }
  }
}

extension TaskStore {
  package func pendingEvents(
    limit: Int, bytes: Int = 3 << 20, excluding rows: [Int64] = []
  ) async throws -> PendingEvents {
    try await pendingEvents(limit: limit, bytes: bytes, excluding: rows)
  }
}
