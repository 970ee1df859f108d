import CommandLineKit
import TaskCore

/// Where the demo is seen: live bars with the events above them, or lines on a pipe.
struct DemoStage {
  private let context: Context
  private let announcer: Announcer
  private var board: BoardDisplay
  private var lines: LinesDisplay

  init(_ context: Context, _ announcer: Announcer) {
    self.context = context
    self.announcer = announcer
    board = BoardDisplay(context.output, context.terminal)
    lines = LinesDisplay(context.output)
  }

  mutating func show(_ tasks: [TaskDocument]) {
    guard context.terminal.isInteractive else { return lines.show(tasks) }
    for line in announcer.hold() { board.say(line) }
    board.show(tasks)
  }

  mutating func say(_ text: String) {
    if context.terminal.isInteractive {
      board.say(text, in: .bold)
    } else {
      context.output.line(text)
    }
  }
}
