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
  private var shown: [UniqueID: Shown] = [:]

  init(_ output: Output) {
    self.output = output
  }

  mutating func show(_ tasks: [TaskDocument], more: Set<TaskState>) {
    let now = BootInstant.now
    for task in tasks {
      let last = shown[task.spec.id]
      let hasMoved = last.map { $0.bytes != task.bytesDone && now - $0.at >= Self.pause } ?? true
      let words: [String?] = [task.status, task.error?.code.rawValue]
      guard last?.words != words || hasMoved else { continue }
      shown[task.spec.id] = Shown(words: words, bytes: task.bytesDone, at: now)
      output.line(task.line)
    }
  }
}
