import CommandLineKit
import Glibc
import ReelhaulSystem
import TaskCore
import WorkerOptions

/// Live bars on a terminal.
struct BoardDisplay: TaskDisplay {
  private let output: Output
  private var terminal: Terminal
  private var writer = BoardWriter()

  init(_ output: Output, _ terminal: Terminal) {
    self.output = output
    self.terminal = terminal
  }

  mutating func show(_ tasks: [TaskDocument], more: Set<TaskState>) {
    terminal.width = TerminalSize.columns(of: STDOUT_FILENO).map(Int.init) ?? terminal.width
    let rows = TerminalSize.rows(of: STDOUT_FILENO).map(Int.init) ?? 24
    let footer = tasks.count == 1 ? "" : tasks.summary(more: more) ?? "nothing to do"
    let board = ProgressBoard(items: tasks.map(\.progressItem), footer: footer)
    output.write(writer.frame(board.lines(on: terminal, height: max(2, rows - 1)), width: terminal.width))
  }

  /// Prints a line above the bars permanently.
  mutating func say(_ line: String) { say(line, in: nil) }

  mutating func say(_ line: String, in ink: Paint.Ink?) {
    let lines = terminal.wrap(DisplayWidth.printable(line)).map { line in ink.map { terminal.paint($0, line) } ?? line }
    output.write(writer.above(lines, width: terminal.width))
  }
}
