import CommandLineKit
import TaskCore
import WorkerOptions

/// Shows followed tasks.
protocol TaskDisplay: Sendable {
  /// `tasks` are all followed tasks, as they are now. In the states `more` there are others that are not followed.
  mutating func show(_ tasks: [TaskDocument], more: Set<TaskState>)
  /// Prints a remark for people.
  mutating func say(_ line: String)
}

extension TaskDisplay {
  mutating func show(_ tasks: [TaskDocument]) { show(tasks, more: []) }
  func say(_ line: String) { Output.error.line(DisplayWidth.printable(line)) }
}

struct NoDisplay: TaskDisplay {
  func show(_ tasks: [TaskDocument], more: Set<TaskState>) {}
}
