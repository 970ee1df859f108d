import ReelhaulCodec
import ReelhaulMessages
import TaskCore
import TaskStore

/// The life of a task: its unusual events, and those of every life, which follow from the task itself.
package struct TaskHistory: Sendable {
  private let task: TaskDocument
  /// The oldest first.
  package let entries: [HistoryEntry]

  package init(of task: TaskDocument, _ unusual: [HistoryEntry]) {
    self.task = task
    var entries = [
      HistoryEntry(type: "submitted", sequence: 1, at: task.createdAt, attempt: 0, epoch: 0)
    ]
    // Of the runs before, the beginnings are in the events that ended them.
    entries += unusual.filter { $0.sequence > 1 }
    // A task that ended before there was a history has no row of it.
    if let finishedAt = task.finishedAt, !unusual.contains(where: { $0.sequence == task.sequence }) {
      entries.append(
        HistoryEntry(
          type: task.state.rawValue, sequence: task.sequence, at: finishedAt, attempt: task.attempt, epoch: task.epoch,
          startedAt: task.startedAt, worker: task.worker, code: task.error?.code, message: task.error?.message))
    }
    // They are in the order of their numbers: times are those of the beginnings of transactions, and the clock of the server
    // may have been set. Only the start has none, and comes by its time.
    if let startedAt = task.startedAt, task.state.isOwned || task.state == .succeeded {
      // The claim may have begun before the submit, or the command, whose task it found. A task that runs can be
      // prioritized, and that event has the epoch before the run.
      let before = entries.filter { $0.epoch < task.epoch && $0.type != "prioritized" }
      let at = before.map(\.at).reduce(startedAt, max)
      let place = entries.firstIndex { $0.at > at || $0.sequence == task.sequence && $0.epoch == task.epoch }
      entries.insert(
        HistoryEntry(
          type: "started", sequence: task.sequence, at: at, attempt: task.attempt, epoch: task.epoch,
          worker: task.worker), at: place ?? entries.count)
    }
    self.entries = entries
  }

  /// What to do about the failure of an event; nil if nothing is to be done, or nothing more.
  package func advice(_ entry: HistoryEntry) -> String? {
    guard entry.code != nil, entry.sequence == task.sequence else { return nil }
    return FailureAdvice.of(task)
  }

  /// `{"history": […]}`
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.name("history")
      json.array { json in
        for entry in entries {
          json.object { json in
            json.member("at", entry.at)
            json.member("type", entry.type)
            json.member("sequence", entry.sequence)
            json.member("attempt", entry.attempt)
            json.member("epoch", entry.epoch)
            json.member("startedAt", entry.startedAt)
            json.member("worker", entry.worker)
            json.member("actor", entry.actor)
            json.member("code", entry.code?.rawValue)
            json.member("message", entry.message)
            json.member("advice", advice(entry))
          }
        }
      }
    }
  }
}
