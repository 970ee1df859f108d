import CommandLineKit
import TaskCore

/// A line for each change of state, and one a second for a task that moves: for pipes.
struct LinesDisplay: TaskDisplay {
  private static let pause: Duration = .seconds(1)

  private struct Shown {
    var state: TaskState
    var bytes: Int64
    var at: ContinuousClock.Instant
  }

  private let output: Output
  private var shown: [UUID: Shown] = [:]

  init(_ output: Output) {
    self.output = output
  }

  mutating func show(_ tasks: [TaskDocument]) {
    let now = ContinuousClock.now
    for task in tasks {
      let last = shown[task.spec.id]
      let hasMoved = last.map { $0.bytes != task.bytesDone && now - $0.at >= Self.pause } ?? true
      guard last?.state != task.state || hasMoved else { continue }
      shown[task.spec.id] = Shown(state: task.state, bytes: task.bytesDone, at: now)
      output.line(task.line)
    }
  }
}
