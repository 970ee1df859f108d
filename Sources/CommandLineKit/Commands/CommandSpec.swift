/// A command as a value. Parsing, help and completions are derived from it.
package struct CommandSpec: Sendable {
  package var name: String
  /// Other words that people may type for this command. The answer to them names the command.
  package var synonyms: [String]
  /// One line, without a full stop, for lists of commands.
  package var summary: String
  /// Paragraphs for the command's own help, separated by empty lines.
  package var discussion: String
  package var options: [OptionSpec]
  package var positionals: [PositionalSpec]
  package var examples: [Example]
  package var exits: [ExitMeaning]
  /// If there are any, the next word names one of them, and the command has no positionals.
  package var subcommands: [CommandSpec]

  package init(
    name: String, synonyms: [String] = [], summary: String, discussion: String = "", options: [OptionSpec] = [],
    positionals: [PositionalSpec] = [], examples: [Example] = [], exits: [ExitMeaning] = [],
    subcommands: [CommandSpec] = []
  ) {
    self.name = name
    self.synonyms = synonyms
    self.summary = summary
    self.discussion = discussion
    self.options = options
    self.positionals = positionals
    self.examples = examples
    self.exits = exits
    self.subcommands = subcommands
  }

  package func subcommand(_ name: String) -> CommandSpec? {
    subcommands.first { $0.name == name }
  }
}

/// A command line to try, and what it does.
package struct Example: Sendable, Hashable {
  package var line: String
  package var meaning: String

  package init(_ line: String, _ meaning: String) {
    self.line = line
    self.meaning = meaning
  }
}

/// The meaning of one exit code of a command.
package struct ExitMeaning: Sendable, Hashable {
  package var code: Int32
  package var meaning: String

  package init(_ code: Int32, _ meaning: String) {
    self.code = code
    self.meaning = meaning
  }
}
