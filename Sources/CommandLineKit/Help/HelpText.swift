/// The `--help` of a command: usage, description, arguments, options by group, examples, exit codes.
package struct HelpText: Sendable {
  private let command: CommandSpec
  private let path: String
  private let inherited: [OptionSpec]
  private let width: Int
  private let paint: Paint

  /// `inherited` are the program's own options, which every command has. `width` is in columns.
  package init(
    _ command: CommandSpec, path: [String], inherited: [OptionSpec] = [], width: Int = 80, paint: Paint = .plain
  ) {
    self.command = command
    self.path = path.joined(separator: " ")
    self.inherited = path.count > 1 ? inherited : []
    self.width = min(max(width, 40), 120)
    self.paint = paint
  }

  package func render() -> String {
    ([usage] + discussion + [commands, arguments] + optionGroups + [examples, exits])
      .filter { !$0.isEmpty }.joined(separator: "\n\n") + "\n"
  }

  private var usage: String {
    var words = [path]
    if !command.subcommands.isEmpty { words.append("COMMAND") }
    words += command.positionals.map(\.usage)
    words.append("[OPTIONS]")
    return paint(.bold, "Usage:") + " " + words.joined(separator: " ")
  }

  private var discussion: [String] {
    let paragraphs = command.discussion.split(separator: "\n\n").map { text in
      TextWrap.lines(String(text), width: width).joined(separator: "\n")
    }
    return [command.summary + "."] + paragraphs
  }

  private var commands: String {
    section("Commands", command.subcommands.map { ($0.name, $0.summary) })
  }

  private var arguments: String {
    section("Arguments", command.positionals.map { ($0.name, $0.help) })
  }

  private var optionGroups: [String] {
    let options =
      command.options + inherited + [.help] + (inherited.isEmpty && path.contains(" ") == false ? [.version] : [])
    var order: [String] = []
    for option in options where !order.contains(option.group) { order.append(option.group) }
    return order.map { group in
      section(group, options.filter { $0.group == group }.map { (Self.spelling($0), Self.meaning($0)) })
    }
  }

  private static func spelling(_ option: OptionSpec) -> String {
    let short = option.short.map { "-\($0), " } ?? "    "
    let value = option.takesValue ? " \(option.valueName)" : ""
    return short + option.spelling + value
  }

  private static func meaning(_ option: OptionSpec) -> String {
    var notes: [String] = []
    if option.isRepeatable { notes.append("repeatable") }
    if let value = option.defaultValue { notes.append("default: \(value)") }
    if let key = option.environment { notes.append("env: \(key)") }
    return notes.isEmpty ? option.help : "\(option.help) [\(notes.joined(separator: "; "))]"
  }

  private var examples: String {
    guard !command.examples.isEmpty else { return "" }
    let lines = command.examples.flatMap { ["  # \($0.meaning)", "  \($0.line)"] }
    return ([paint(.bold, "Examples:")] + lines).joined(separator: "\n")
  }

  private var exits: String {
    section("Exit codes", command.exits.map { ("\($0.code)", $0.meaning) })
  }

  /// Two columns under a heading. If the left text is too long for its column, it is on its own line.
  private func section(_ title: String, _ rows: [(String, String)]) -> String {
    guard !rows.isEmpty else { return "" }
    let column = min(rows.map { $0.0.count }.max() ?? 0, 28) + 4
    var lines = [paint(.bold, "\(title):")]
    for (left, right) in rows {
      var wrapped = TextWrap.lines(right, width: max(20, width - column))[...]
      if left.count + 4 <= column {
        let first = wrapped.popFirst() ?? ""
        lines.append("  " + left + String(repeating: " ", count: column - 2 - left.count) + first)
      } else {
        lines.append("  " + left)
      }
      lines += wrapped.map { String(repeating: " ", count: column) + $0 }
    }
    return lines.joined(separator: "\n")
  }
}
