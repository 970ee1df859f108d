/// One function for `complete -F`. The command is the first word that is not an option.
struct BashCompletion {
  private let program: CommandSpec

  init(_ program: CommandSpec) {
    self.program = program
  }

  func render() -> String {
    let names = program.subcommands.map(\.name)
    let words = names + ["help"] + (program.options + [.help, .version]).map(\.spelling)
    return """
      # bash completion for \(program.name): source <(\(program.name) completions bash)
      _\(program.name)() {
        local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" command="" word
        if [[ $cur == "=" ]]; then cur=""; elif [[ $prev == "=" ]]; then prev="${COMP_WORDS[COMP_CWORD-2]}"; fi
        for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
          case $word in \(names.joined(separator: "|"))) command=$word; break;; esac
        done
        COMPREPLY=()
        case "$command:$prev" in
      \((valueCases("", program.options) + program.subcommands.flatMap(valueCases)).joined(separator: "\n"))
        esac
        case $command in
          "") COMPREPLY=($(compgen -W "\(words.joined(separator: " "))" -- "$cur"));;
      \(program.subcommands.map(wordCase).joined(separator: "\n"))
        esac
      }
      complete -o default -F _\(program.name) \(program.name)

      """
  }

  /// The completions for the value of an option.
  private func valueCases(_ command: CommandSpec) -> [String] {
    valueCases(command.name, CompletionScript.options(of: command, in: program))
  }

  private func valueCases(_ command: String, _ options: [OptionSpec]) -> [String] {
    options.compactMap { option in
      guard let reply = reply(for: option.kind) else { return nil }
      let spellings = [option.spelling] + (option.short.map { ["-\($0)"] } ?? [])
      return "    \(spellings.map { "\(command):\($0)" }.joined(separator: "|"))) \(reply); return;;"
    }
  }

  private func wordCase(_ command: CommandSpec) -> String {
    let options = CompletionScript.options(of: command, in: program).map(\.spelling).joined(separator: " ")
    let words = command.positionals.first.flatMap { reply(for: $0.kind) }
    let positional = words.map { "else \($0); " } ?? ""
    return """
          \(command.name)) if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W "\(options)" -- "$cur")); \(positional)fi;;
      """
  }

  /// A name is a whole line, because it may have spaces and stars; readline quotes it.
  private static func files(_ kind: String) -> String {
    "mapfile -t COMPREPLY < <(compgen \(kind) -- \"$cur\"); compopt -o filenames 2>/dev/null"
  }

  private func reply(for kind: ValueKind) -> String? {
    switch kind {
    case .flag: nil
    case .choice(let choices), .words(let choices):
      "COMPREPLY=($(compgen -W \"\(choices.joined(separator: " "))\" -- \"$cur\"))"
    case .file: Self.files("-f")
    case .directory: Self.files("-d")
    case .text, .integer, .bytes: "COMPREPLY=()"
    }
  }
}
