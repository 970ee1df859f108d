/// A `#compdef` function over `_arguments`.
struct ZshCompletion {
  private let program: CommandSpec

  init(_ program: CommandSpec) {
    self.program = program
  }

  func render() -> String {
    let own = program.options.flatMap(optionSpecs).map(CompletionScript.quote).joined(separator: " ")
    return """
      #compdef \(program.name)
      # zsh completion for \(program.name): source <(\(program.name) completions zsh)
      _\(program.name)() {
        local context state line
        typeset -A opt_args
        local -a commands=(
      \(program.subcommands.map { "    " + CompletionScript.quote("\($0.name):\(escape($0.summary))") }.joined(separator: "\n"))
        )
        _arguments -C '(- *)'{-h,--help}'[Show help]' '(- *)--version[Show the version]' \(own) \\
          '1:command:->command' '*::argument:->argument'
        case $state in
          command)
            commands+=('help:Show the help of a command')
            _describe command commands;;
          argument)
            case $line[1] in
              help) _describe command commands;;
      \(program.subcommands.map(argumentCase).joined(separator: "\n"))
            esac;;
        esac
      }
      if [[ $funcstack[1] == _\(program.name) ]]; then _\(program.name) "$@"; else compdef _\(program.name) \(program.name); fi

      """
  }

  private func argumentCase(_ command: CommandSpec) -> String {
    let options = CompletionScript.options(of: command, in: program).flatMap(optionSpecs)
    let words = (options + command.positionals.map(positionalSpec)).map(CompletionScript.quote)
    return "        \(command.name)) _arguments \(words.joined(separator: " "));;"
  }

  private func optionSpecs(_ option: OptionSpec) -> [String] {
    let spellings = [option.spelling] + (option.short.map { ["-\($0)"] } ?? [])
    return spellings.map { spelling in
      let many = option.isRepeatable ? "*" : ""
      let equals = option.takesValue && spelling.hasPrefix("--") ? "=" : ""
      let value = option.takesValue ? ":\(escape(option.valueName)):\(action(option.kind))" : ""
      return "\(many)\(spelling)\(equals)[\(escape(option.help))]\(value)"
    }
  }

  private func positionalSpec(_ positional: PositionalSpec) -> String {
    let place =
      switch positional.arity {
      case .one: ":"
      case .optional: "::"
      case .many: "*:"
      }
    return "\(place)\(escape(positional.name)):\(action(positional.kind))"
  }

  private func action(_ kind: ValueKind) -> String {
    switch kind {
    case .choice(let choices), .words(let choices): "(\(choices.joined(separator: " ")))"
    case .file: "_files"
    case .directory: "_files -/"
    case .flag, .text, .integer, .bytes: " "
    }
  }

  /// Brackets and colons have a meaning in `_arguments`.
  private func escape(_ text: String) -> String {
    text.reduce(into: "") { result, character in
      if "[]:\\".contains(character) { result.append("\\") }
      result.append(character)
    }
  }
}
