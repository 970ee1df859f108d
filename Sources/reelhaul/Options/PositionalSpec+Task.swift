import CommandLineKit

extension PositionalSpec {
  static let task = PositionalSpec("TASK", help: "the task's id")
  static let tasks = PositionalSpec("TASK", .many(atLeast: 1), help: "the tasks' ids")
}
