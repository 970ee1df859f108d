import CommandLineKit
import ReelhaulMessages
import TaskCore
import WorkerOptions

/// Prints a document for each change, one per line.
struct JSONLinesDisplay: TaskDisplay {
  private let output: Output
  private var shown = LastShown<TaskDocument>()

  init(_ output: Output) {
    self.output = output
  }

  mutating func show(_ tasks: [TaskDocument], more: Set<TaskState>) {
    shown.update(tasks) { last, task, _ in
      if last != task { output.document { TaskDocumentJSON.write(task, to: &$0) } }
      return task
    }
  }
}
