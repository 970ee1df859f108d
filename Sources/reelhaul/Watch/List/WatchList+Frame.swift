import CommandLineKit
import TaskAdvice
import TaskCore
import WorkerOptions

extension WatchList {
  private static let keys = "j k move  enter open  / find  s states  p pause  r resume, retry  c cancel  ? help  q quit"

  private static let help = [
    "j k ↓ ↑", "move; also page keys, g and G", "enter", "open or close a task", "/",
    "find: titles, URLs, queues, kinds, ids",
    "escape", "show all again", "s 1…6", "unfinished, running, waiting, paused, failed, all", "p",
    "pause: its bytes are kept",
    "r", "resume a paused task, retry a failed or canceled one", "c", "cancel, after a question", "x",
    "remove from the fleet, after a question; its file stays", "+ -", "raise or lower the priority by 10", "q",
    "quit; tasks go on",
  ]

  /// The screen, `rows` lines that each fit the terminal. `details` are those of the open task, `isOld`: the store cannot be
  /// read now.
  func frame(on terminal: Terminal, rows: Int, details: [String] = [], isOld: Bool = false) -> [String] {
    let ascii = !terminal.isUnicode
    func cut(_ text: String) -> String {
      DisplayWidth.truncate(DisplayWidth.printable(text), to: terminal.width, ascii: ascii)
    }
    var body: [String]
    switch mode {
    case .help:
      body = stride(from: 0, to: Self.help.count, by: 2).map {
        cut("  " + DisplayWidth.fit(Self.help[$0], to: 10) + Self.help[$0 + 1])
      }
    case .details: body = details.flatMap { terminal.wrap(DisplayWidth.printable($0)) }
    default: body = listed(cut, on: terminal)
    }
    let room = max(0, rows - 3)
    if body.count > room { body = Array(body.prefix(room)) }
    body += Array(repeating: "", count: room - body.count)
    let head =
      isOld
      ? terminal.paint(.red, cut("What is shown is old: PostgreSQL cannot be reached."))
      : terminal.paint(.bold, cut(tasks.summary(more: more) ?? "no tasks"))
    return [head, terminal.paint(.dim, cut(filterLine))] + body + [lastLine(cut, terminal)]
  }

  private var filterLine: String {
    let groups = Group.allCases.enumerated().map { $1 == group ? "[\($0 + 1) \($1)]" : " \($0 + 1) \($1) " }
    return groups.joined(separator: " ") + (text.isEmpty || mode == .typing ? "" : "   /\(text)")
  }

  private func lastLine(_ cut: (String) -> String, _ terminal: Terminal) -> String {
    switch mode {
    case .typing: cut("/\(text)\(terminal.isUnicode ? "▏" : "_")")
    case .confirming(let action, _, let title):
      terminal.paint(.yellow, cut("Really \(action.name) \(title)? y: yes, other keys: no"))
    default: message.isEmpty ? terminal.paint(.dim, cut(Self.keys)) : cut(message)
    }
  }

  private func listed(_ cut: (String) -> String, on terminal: Terminal) -> [String] {
    let shown = shown
    let visible = shown.dropFirst(top).prefix(height)
    guard !visible.isEmpty else {
      return [text.isEmpty ? "" : terminal.paint(.dim, cut("No task of these contains \"\(text)\"."))]
    }
    var narrow = terminal
    narrow.width = max(1, terminal.width - 2)
    // Of all tasks and not of the visible ones, so that columns stay where they are.
    let longest = shown.reduce(0) { max($0, DisplayWidth.of($1.title)) }
    let lines = ProgressBoard(items: visible.map(\.progressItem), titleWidth: longest).lines(on: narrow)
    return zip(visible, lines).map { task, line in
      (task.spec.id == selected ? terminal.paint(.bold, terminal.isUnicode ? "▌ " : "> ") : "  ") + line
    }
  }
}
