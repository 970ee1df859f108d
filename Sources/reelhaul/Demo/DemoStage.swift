import CommandLineKit
import TaskCore

/// Where the demo is seen: live bars with the events above them, or lines on a pipe.
struct DemoStage {
  private let context: Context
  private var board: BoardDisplay
  private var lines: LinesDisplay

  init(_ context: Context) {
    self.context = context
    board = BoardDisplay(context.output, context.terminal)
    lines = LinesDisplay(context.output)
  }

  mutating func show(_ tasks: [TaskDocument]) {
    if context.terminal.isInteractive { board.show(tasks) } else { lines.show(tasks) }
  }

  mutating func say(_ text: String) {
    if context.terminal.isInteractive {
      board.say(context.terminal.paint(.bold, text))
    } else {
      context.output.line(text)
    }
  }
}
