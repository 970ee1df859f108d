/// An option of a command. The value that declares it also reads it from the arguments.
package struct OptionSpec: Sendable, Hashable {
  /// The long name, without its dashes.
  package var name: String
  package var short: Character?
  package var kind: ValueKind
  /// The placeholder in help: `URL`, `SECONDS` …
  package var valueName: String
  package var help: String
  /// The value if none is given. It is parsed like a given value.
  package var defaultValue: String?
  /// The environment variable (and key of the settings file) that is used if the flag is not given.
  package var environment: String?
  package var isRepeatable: Bool
  /// The option's heading in help.
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

  /// `--name (VARIABLE)`, for errors about a value that may come from either.
  package var setting: String { environment.map { "\(spelling) (\($0))" } ?? spelling }
}

extension OptionSpec {
  /// An option of every command.
  package static let help = OptionSpec("help", short: "h", .flag, group: "General", help: "Show this help")
  /// An option of the program, not of its commands.
  package static let version = OptionSpec("version", .flag, group: "General", help: "Show the version")
}
