import TaskCore

/// Where followed tasks are shown.
protocol TaskDisplay: Sendable {
  /// `tasks` are all that are followed, as they are now.
  mutating func show(_ tasks: [TaskDocument])
}

struct NoDisplay: TaskDisplay {
  func show(_ tasks: [TaskDocument]) {}
}
