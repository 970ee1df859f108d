import CommandLineKit
import TaskCore
import WorkerOptions

/// Prints a document for each change, one per line.
struct JSONLinesDisplay: TaskDisplay {
  private let output: Output
  private var shown: [UniqueID: TaskDocument] = [:]

  init(_ output: Output) {
    self.output = output
  }

  mutating func show(_ tasks: [TaskDocument], more: Set<TaskState>) {
    for task in tasks where shown.updateValue(task, forKey: task.spec.id) != task {
      output.json(task)
    }
  }
}
