/// One `complete` line for each command and option.
struct FishCompletion {
  private let program: CommandSpec

  init(_ program: CommandSpec) {
    self.program = program
  }

  func render() -> String {
    let head = [
      "# fish completion for \(program.name): \(program.name) completions fish | source",
      "complete -c \(program.name) -f",
      line("__fish_use_subcommand", "-s h -l help -d 'Show help'"),
      line("__fish_use_subcommand", "-l version -d 'Show the version'"),
    ]
    let own = program.options.map { option("__fish_use_subcommand", $0) }
    let commands = program.subcommands.flatMap { command in
      ["__fish_use_subcommand", "__fish_seen_subcommand_from help"].map { condition in
        line(condition, "-a \(command.name) -d \(CompletionScript.quote(command.summary))")
      }
    }
    let help = line("__fish_use_subcommand", "-a help -d 'Show the help of a command'")
    return (head + own + commands + [help] + program.subcommands.flatMap(lines)).joined(separator: "\n") + "\n"
  }

  private func lines(_ command: CommandSpec) -> [String] {
    let condition = "__fish_seen_subcommand_from \(command.name); and not __fish_seen_subcommand_from help"
    let options = CompletionScript.options(of: command, in: program).map { option(condition, $0) }
    let words = command.positionals.compactMap { positional in
      switch positional.kind {
      case .choice, .words, .file, .directory: line(condition, arguments(positional.kind, required: false))
      case .flag, .text, .integer, .bytes: nil
      }
    }
    return options + words
  }

  private func option(_ condition: String, _ option: OptionSpec) -> String {
    let short = option.short.map { "-s \($0) " } ?? ""
    let argument = option.takesValue ? " \(arguments(option.kind, required: true))" : ""
    return line(condition, "\(short)-l \(option.name)\(argument) -d \(CompletionScript.quote(option.help))")
  }

  private func arguments(_ kind: ValueKind, required: Bool) -> String {
    let exclusive = required ? "-x " : ""
    return switch kind {
    case .choice(let choices), .words(let choices):
      // Each value gets an empty description, because fish would show the option's description for each.
      "\(exclusive)-a \(CompletionScript.quote(choices.map { required ? "\($0)\\t" : $0 }.joined(separator: " ")))"
    case .file: required ? "-r -F" : "-F"
    case .directory: "\(exclusive)-a '(__fish_complete_directories)'"
    case .flag, .text, .integer, .bytes: required ? "-x" : ""
    }
  }

  private func line(_ condition: String, _ rest: String) -> String {
    "complete -c \(program.name) -n \(CompletionScript.quote(condition)) \(rest)"
  }
}
