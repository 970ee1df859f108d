import ReelhaulCodec
import ReelhaulSystem

/// Parses a command line: `--name value`, `--name=value`, `-abc`, `--`, subcommands.
package struct CommandParser: Sendable {
  private let program: CommandSpec
  private let settings: Settings

  /// `program` is the root of the commands. Its options are valid with all of them.
  package init(_ program: CommandSpec, settings: Settings) {
    self.program = program
    self.settings = settings
  }

  /// `words` are without the program's name.
  package func parse(_ words: [String]) throws(UsageError) -> Invocation {
    var line = Line(program)
    var remaining = words[...]
    while let word = remaining.popFirst() {
      // No option is a digit, so a word like `-5` is a negative number. The code that reads it reports if it is not
      // allowed.
      if line.onlyPositionals || word == "-" || !word.hasPrefix("-") || word.dropFirst().first?.isNumber == true {
        try line.take(word)
      } else if word == "--" {
        line.onlyPositionals = true
      } else if word.hasPrefix("--") {
        try line.takeLong(word.dropFirst(2), &remaining)
      } else {
        try line.takeShort(word.dropFirst(), &remaining)
      }
    }
    if line.values[OptionSpec.help.name] != nil || line.asksHelp { return .help(line.command, path: line.path) }
    if line.values[OptionSpec.version.name] != nil { return .version }
    return .run(try line.finish(settings))
  }
}

/// The state of a command line that is being parsed.
private struct Line {
  private(set) var command: CommandSpec
  /// The program's name, then the commands'.
  private(set) var path: [String]
  private(set) var values: [String: [String]] = [:]
  private(set) var asksHelp = false
  var onlyPositionals = false
  private var options: [OptionSpec]
  private var positionals: [String] = []

  init(_ program: CommandSpec) {
    command = program
    path = [program.name]
    options = program.options + [.help, .version]
  }

  private var name: String { path.joined(separator: " ") }
  private var helpHint: String { "See '\(name) --help'." }

  mutating func take(_ word: String) throws(UsageError) {
    guard !command.subcommands.isEmpty else {
      guard !asksHelp else { throw surplus(word) }
      positionals.append(word)
      return
    }
    if let next = command.subcommand(word) {
      command = next
      path.append(word)
      options.append(contentsOf: next.options)
    } else if word == "help", path.count == 1 {
      asksHelp = true
    } else {
      let near =
        command.subcommands.first { $0.synonyms.contains(word) }?.name
        ?? Suggestion.nearest(to: word, in: command.subcommands.map(\.name))
      throw UsageError(
        "there is no command \"\(word)\"", hint: near.map { "Did you mean '\(name) \($0)'?" } ?? helpHint)
    }
  }

  mutating func takeLong(_ text: Substring, _ rest: inout ArraySlice<String>) throws(UsageError) {
    let pair = text.keyAndValue
    let word = pair?.key ?? String(text)
    guard let option = options.first(where: { $0.name == word }) else {
      let near = Suggestion.nearest(to: word, in: options.map(\.name))
      throw UsageError(
        "\(name) has no option --\(word)", hint: near.map { "Did you mean --\($0)?" } ?? helpHint)
    }
    guard option.takesValue else {
      if pair != nil { throw UsageError("--\(word) takes no value", hint: helpHint) }
      values[word] = [""]
      return
    }
    let value = if let pair { pair.value } else { try value(of: option, &rest) }
    try set(option, value)
  }

  mutating func takeShort(_ letters: Substring, _ rest: inout ArraySlice<String>) throws(UsageError) {
    var letters = letters
    while let letter = letters.popFirst() {
      guard let option = options.first(where: { $0.short == letter }) else {
        throw UsageError("\(name) has no option -\(letter)", hint: helpHint)
      }
      if !option.takesValue {
        values[option.name] = [""]
        continue
      }
      if letters.first == "=" { letters.removeFirst() }
      try set(option, letters.isEmpty ? value(of: option, &rest) : String(letters))
      letters = ""
    }
  }

  /// The word after an option that needs a value. A word that is itself an option is not taken as the value.
  private func value(of option: OptionSpec, _ rest: inout ArraySlice<String>) throws(UsageError) -> String {
    guard let next = rest.first, !isOption(next) else {
      throw UsageError("\(option.spelling) needs a value (\(option.valueName))", hint: helpHint)
    }
    rest.removeFirst()
    return next
  }

  private func isOption(_ word: String) -> Bool {
    guard word.hasPrefix("--") else { return false }
    let name = word.dropFirst(2).prefix { $0 != "=" }
    return name.isEmpty || options.contains { $0.name == name }
  }

  private mutating func set(_ option: OptionSpec, _ text: String) throws(UsageError) {
    if let complaint = option.kind.complaint(about: text) {
      throw UsageError("\(option.spelling) \(complaint)")
    }
    if option.isRepeatable {
      values[option.name, default: []].append(text)
    } else if values.updateValue([text], forKey: option.name) != nil {
      throw UsageError("\(option.spelling) is given twice")
    }
  }

  mutating func finish(_ settings: Settings) throws(UsageError) -> Arguments {
    guard command.subcommands.isEmpty else {
      throw UsageError("\(name) needs a command", hint: helpHint)
    }
    try checkPositionals()
    for option in options where values[option.name] == nil {
      if let text = try settings.value(of: option) { values[option.name] = [text] }
    }
    return Arguments(path: Array(path.dropFirst()), positionals: positionals, values: values, settings: settings)
  }

  private func checkPositionals() throws(UsageError) {
    var remaining = positionals[...]
    for (index, positional) in command.positionals.enumerated() {
      let taken: ArraySlice<String>
      switch positional.arity {
      case .one: taken = remaining.prefix(1)
      // Required words that follow are served first.
      case .optional:
        let needed = command.positionals[(index + 1)...].count(where: \.isRequired)
        taken = remaining.count > needed ? remaining.prefix(1) : []
      case .many: taken = remaining
      }
      if taken.isEmpty, positional.isRequired {
        throw UsageError("\(name) needs \(positional.name): \(positional.help)", hint: helpHint)
      }
      for word in taken {
        if let complaint = positional.kind.complaint(about: word) {
          throw UsageError("\(positional.name) \(complaint)")
        }
      }
      remaining = remaining.dropFirst(taken.count)
    }
    if let extra = remaining.first {
      throw surplus(extra)
    }
  }

  private func surplus(_ word: String) -> UsageError {
    UsageError(
      "\(asksHelp ? "\(path[0]) help" : name) does not know what to do with \"\(word)\"", hint: helpHint)
  }
}
