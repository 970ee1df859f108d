/// An option of a command. Its value is read from the arguments by the same value that declares it.
package struct OptionSpec: Sendable, Hashable {
  /// The long name, without its dashes.
  package var name: String
  package var short: Character?
  package var kind: ValueKind
  /// The placeholder in help: `URL`, `SECONDS` …
  package var valueName: String
  package var help: String
  /// What holds where nothing is given, read as if it had been given.
  package var defaultValue: String?
  /// The environment variable (and key of the settings file) that gives the value where no flag does.
  package var environment: String?
  package var isRepeatable: Bool
  /// The heading it stands under in help.
  package var group: String

  package init(
    _ name: String, short: Character? = nil, _ kind: ValueKind, valueName: String? = nil,
    default defaultValue: String? = nil,
    environment: String? = nil, repeatable isRepeatable: Bool = false, group: String = "Options", help: String
  ) {
    self.name = name
    self.short = short
    self.kind = kind
    self.valueName = valueName ?? kind.placeholder
    self.help = help
    self.defaultValue = defaultValue
    self.environment = environment
    self.isRepeatable = isRepeatable
    self.group = group
  }

  package var takesValue: Bool { kind != .flag }

  /// `--name`, as messages write it.
  package var spelling: String { "--\(name)" }

  /// `--name (VARIABLE)`: for what is wrong with a value that either may have given.
  package var setting: String { environment.map { "\(spelling) (\($0))" } ?? spelling }
}

extension OptionSpec {
  /// Every command has it.
  package static let help = OptionSpec("help", short: "h", .flag, group: "General", help: "Show this help")
  /// The program has it, not its commands.
  package static let version = OptionSpec("version", .flag, group: "General", help: "Show the version")
}
