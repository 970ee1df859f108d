import CommandLineKit
import Demo
import TaskCore

/// Shows a demonstration: live bars with the events above them, or lines on a pipe.
struct FleetStage: DemoStage {
  private let console: Console
  private let announcer: Announcer
  private var board: BoardDisplay
  private var lines: LinesDisplay

  init(_ console: Console, _ announcer: Announcer) {
    self.console = console
    self.announcer = announcer
    board = BoardDisplay(console.output, console.terminal)
    lines = LinesDisplay(console.output)
  }

  mutating func show(_ tasks: [TaskDocument]) {
    guard console.terminal.isInteractive else { return lines.show(tasks) }
    for line in announcer.hold() { board.say(line) }
    board.show(tasks)
  }

  mutating func say(_ text: String) {
    if console.terminal.isInteractive {
      board.say(text, in: .bold)
    } else {
      console.output.line(text)
    }
  }

  func end() { announcer.release() }
}
