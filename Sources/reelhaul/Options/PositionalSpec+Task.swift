import CommandLineKit
import WorkerOptions

extension PositionalSpec {
  static let task = PositionalSpec("TASK", help: "the task's id, or its last 6 digits or more")
  /// None with `--all`.
  static let anyTasks = PositionalSpec(
    "TASK", .many, help: "the tasks' ids, or their last 6 digits or more")
}

extension Example {
  /// A task's id for examples.
  static let task = "019adf3e-5a00-7cc1-9d3e-6d2f0a7e4b11"
}
