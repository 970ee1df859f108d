/// The values of a command line, checked against its command.
package struct Arguments: Sendable {
  /// The command's name and its ancestors' names, without the program's.
  package let path: [String]
  package let positionals: [String]
  /// The values for options that no flag gave: the environment overrides the settings file.
  package let settings: Settings
  private let values: [String: [String]]

  init(path: [String], positionals: [String], values: [String: [String]], settings: Settings) {
    self.path = path
    self.positionals = positionals
    self.values = values
    self.settings = settings
  }

  /// Whether a flag is set.
  package subscript(flag option: OptionSpec) -> Bool { values[option.name] != nil }

  package subscript(option: OptionSpec) -> String? { values[option.name]?.last ?? option.defaultValue }

  /// The value from a flag or a setting; nil if there is none, even if the option has a default.
  package func given(_ option: OptionSpec) -> String? { values[option.name]?.last }

  /// All values of a repeatable option, in order.
  package func all(_ option: OptionSpec) -> [String] {
    values[option.name] ?? option.defaultValue.map { [$0] } ?? []
  }

  /// Throws a ``UsageError`` about the first of these options that is given, such as that it `needs --all`.
  package func refuse(_ options: [OptionSpec], _ reason: String) throws(UsageError) {
    for option in options where values[option.name] != nil { throw UsageError("\(option.spelling) \(reason)") }
  }

  package func integer(_ option: OptionSpec) -> Int64? { self[option].flatMap { Int64($0) } }

  package func bytes(_ option: OptionSpec) -> Int64? { self[option].flatMap { ByteCount($0)?.bytes } }
}
