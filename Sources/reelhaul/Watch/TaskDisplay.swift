import CommandLineKit
import TaskCore
import WorkerOptions

/// Where followed tasks are shown.
protocol TaskDisplay: Sendable {
  /// `tasks` are all that are followed, as they are now; in the states `more` there are others.
  mutating func show(_ tasks: [TaskDocument], more: Set<TaskState>)
  /// Tells something besides the tasks, to a person.
  mutating func say(_ line: String)
}

extension TaskDisplay {
  mutating func show(_ tasks: [TaskDocument]) { show(tasks, more: []) }
  func say(_ line: String) { Output.error.line(DisplayWidth.printable(line)) }
}

struct NoDisplay: TaskDisplay {
  func show(_ tasks: [TaskDocument], more: Set<TaskState>) {}
}
