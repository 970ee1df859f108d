/// Keys and values that flags override: the environment, and below it the settings file.
package struct Settings: Sendable, Hashable {
  private let environment: [String: String]
  private let file: [String: String]

  package init(environment: [String: String], file: [String: String] = [:]) {
    self.environment = environment
    self.file = file
  }

  /// A variable that is set in the environment is used, even if it is empty.
  package subscript(key: String) -> String? { environment[key] ?? file[key] }

  /// The values whose keys begin with `prefix`. The keys of the result lack the prefix.
  package func values(withPrefix prefix: String) -> [String: String] {
    var values: [String: String] = [:]
    for (key, value) in file.merging(environment, uniquingKeysWith: { $1 })
    where key.hasPrefix(prefix) && key.utf8.count > prefix.utf8.count {
      values[String(key.dropFirst(prefix.count))] = value
    }
    return values
  }

  package func names(withPrefix prefix: String) -> [String] {
    values(withPrefix: prefix).keys.map { prefix + $0 }
  }

  /// The value of an option, checked. For a flag that is set it is empty. Nil if the settings have no value.
  package func value(of option: OptionSpec) throws(UsageError) -> String? {
    guard let key = option.environment, let text = self[key], !text.isEmpty else { return nil }
    guard option.takesValue else {
      guard let isSet = Self.truth(of: text) else {
        throw UsageError("\(key) must be true or false, not \"\(text)\"")
      }
      return isSet ? "" : nil
    }
    if let complaint = option.kind.complaint(about: text) { throw UsageError("\(key) \(complaint)") }
    return text
  }

  /// Nil if the text is neither true nor false.
  private static func truth(of text: String) -> Bool? {
    switch text.lowercased() {
    case "1", "true", "yes", "on": true
    case "0", "false", "no", "off": false
    default: nil
    }
  }
}
