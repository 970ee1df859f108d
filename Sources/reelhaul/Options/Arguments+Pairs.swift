import CommandLineKit
import ReelhaulSystem

extension Arguments {
  /// The values of a repeatable option, `KEY=VALUE` each.
  func pairs(_ option: OptionSpec) throws(UsageError) -> [String: String] {
    var pairs: [String: String] = [:]
    for text in all(option) {
      guard let (name, value) = text.keyAndValue, !name.isEmpty else {
        throw UsageError("\(option.spelling) must be KEY=VALUE, not \"\(text)\"")
      }
      guard pairs.updateValue(value, forKey: name) == nil else {
        throw UsageError("\(option.spelling) names \(name) twice")
      }
    }
    return pairs
  }
}
