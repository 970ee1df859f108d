import CommandLineKit
import TaskAdvice
import TaskCore
import TaskStore
import WorkerOptions

extension Table {
  /// One row for each event of a task.
  static func history(_ history: TaskHistory) -> Table {
    var table = Table([
      .init("AT"), .init("EVENT"), .init("ATTEMPT", right: true, leaves: 2), .init("RAN", right: true, leaves: 3),
      .init("WORKER", leaves: 4), .init("ACTOR", leaves: 1), .init("WHAT", shrinks: true, leaves: 5),
    ])
    for entry in history.entries {
      let ran = entry.startedAt.map { max(0, entry.at.microseconds - $0.microseconds) / 1_000_000 }
      let words = [entry.code?.rawValue, entry.message].compactMap { $0 }
      table.add([
        "\(entry.at)", entry.type, entry.attempt > 0 ? "\(entry.attempt)" : "",
        ran.map { DurationText.clock(seconds: $0) } ?? "", entry.worker.map { "\($0)" } ?? "", entry.actor ?? "",
        words.joined(separator: ": "),
      ])
    }
    return table
  }
}
