import CommandLineKit
import TaskCore

/// Where followed tasks are shown.
protocol TaskDisplay: Sendable {
  /// `tasks` are all that are followed, as they are now.
  mutating func show(_ tasks: [TaskDocument])
  /// Tells something besides the tasks, to a person.
  mutating func say(_ line: String)
}

extension TaskDisplay {
  func say(_ line: String) { Output.error.line(DisplayWidth.printable(line)) }
}

struct NoDisplay: TaskDisplay {
  func show(_ tasks: [TaskDocument]) {}
}
