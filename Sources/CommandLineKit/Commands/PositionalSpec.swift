/// A word of a command that is not an option.
package struct PositionalSpec: Sendable, Hashable {
  package enum Arity: Sendable, Hashable {
    case one
    case optional
    /// All remaining words, if there are any.
    case many
  }

  /// The placeholder in help: `TASK`, `URL` …
  package var name: String
  package var arity: Arity
  /// The allowed values. The parser checks them and completions offer them.
  package var kind: ValueKind
  package var help: String

  package init(_ name: String, _ arity: Arity = .one, kind: ValueKind = .text, help: String) {
    self.name = name
    self.arity = arity
    self.kind = kind
    self.help = help
  }

  /// The form in a usage line: `URL`, `[TASK]`, `[TASK...]`.
  package var usage: String {
    switch arity {
    case .one: name
    case .optional: "[\(name)]"
    case .many: "[\(name)...]"
    }
  }

  package var isRequired: Bool { arity == .one }
}
