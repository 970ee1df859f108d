import CommandLineKit
import ReelhaulSystem
import TaskAdvice
import TaskCore
import WorkerOptions

/// For pipes: prints a line for each change of state or error, and one line a second for a running task.
struct LinesDisplay: TaskDisplay {
  private static let pause: Duration = .seconds(1)

  private struct Shown {
    var words: [String?]
    var bytes: Int64
    var at: BootInstant
  }

  private let output: Output
  private var shown = LastShown<Shown>()

  init(_ output: Output) {
    self.output = output
  }

  mutating func show(_ tasks: [TaskDocument], more: Set<TaskState>) {
    shown.update(tasks) { last, task, now in
      let hasMoved = last.map { $0.bytes != task.bytesDone && now - $0.at >= Self.pause } ?? true
      let words: [String?] = [task.status, task.error?.code.rawValue]
      if let last, last.words == words, !hasMoved { return last }
      output.line(task.line)
      return Shown(words: words, bytes: task.bytesDone, at: now)
    }
  }
}
