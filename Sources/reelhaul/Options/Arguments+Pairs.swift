import CommandLineKit

extension Arguments {
  /// The values of a repeatable option, `KEY=VALUE` each.
  func pairs(_ option: OptionSpec) throws(UsageError) -> [String: String] {
    var pairs: [String: String] = [:]
    for text in all(option) {
      guard let equals = text.firstIndex(of: "="), equals > text.startIndex else {
        throw UsageError("\(option.spelling) must be KEY=VALUE, not \"\(text)\"")
      }
      let name = String(text[..<equals])
      guard pairs.updateValue(String(text[text.index(after: equals)...]), forKey: name) == nil else {
        throw UsageError("\(option.spelling) names \(name) twice")
      }
    }
    return pairs
  }
}
