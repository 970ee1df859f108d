import TaskCore

/// The last word counts: an operation looks for tasks only when older ones that might undo it have ended.
extension TaskOperation {
  /// Whether it has to wait until an older one that has not ended does.
  package func waits(for older: TaskOperation) -> Bool {
    looksForTasks && action != older.action && (older.createdAt, older.id) < (createdAt, id) && mayMeet(older)
  }

  package var looksForTasks: Bool { state == .running && !progress.isWalked }

  /// The queues whose tasks it can touch; empty for all.
  package var reachableQueues: [String] {
    guard let queues else { return filter.queues }
    // An empty list would match every queue, and no queue has this name.
    let reachable = filter.queues.isEmpty ? queues : filter.queues.filter(queues.contains)
    return reachable.isEmpty ? [""] : reachable
  }

  /// Whether both may touch one task. Compares only what stays as it was submitted: a task changes its state, for one.
  private func mayMeet(_ other: TaskOperation) -> Bool {
    if case (.ids(let ids), .ids(let others)) = (selection, other.selection), Set(ids).isDisjoint(with: others) {
      return false
    }
    let (its, others) = (filter, other.filter)
    return Self.meet(reachableQueues, other.reachableQueues) && Self.meet(its.kinds, others.kinds)
      && Self.meet(its.hosts, others.hosts) && Self.labelsMeet(its.labels, others.labels)
      && max(its.after ?? .first, others.after ?? .first)
        < min(its.before ?? .last, others.before ?? .last, createdAt, other.createdAt)
  }

  private var filter: OperationFilter {
    if case .filter(let filter) = selection { filter } else { OperationFilter() }
  }

  /// Of lists that match everything if they are empty.
  private static func meet<Value: Hashable>(_ one: [Value], _ other: [Value]) -> Bool {
    one.isEmpty || other.isEmpty || !Set(one).isDisjoint(with: other)
  }

  /// A task has one value of each label.
  private static func labelsMeet(_ one: [String], _ other: [String]) -> Bool {
    guard let one = try? TaskFilter.labels(one), let other = try? TaskFilter.labels(other) else { return false }
    return one.allSatisfy { name, value in
      guard let value, let others = other[name] ?? nil else { return true }
      return value == others
    }
  }
}
