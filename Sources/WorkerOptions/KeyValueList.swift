import CommandLineKit
import ReelhaulSystem

/// `name=value,name=value`
package enum KeyValueList {
  package static func parse(_ text: String, of option: OptionSpec) throws(UsageError) -> [String: String] {
    var values: [String: String] = [:]
    if text.isEmpty { return values }
    for pair in CommaList.parse(text) ?? [""] {
      guard let (name, value) = pair.keyAndValue, !name.isEmpty else {
        throw UsageError("\(option.setting) must be \(option.valueName), not \"\(text)\"")
      }
      guard values.updateValue(value, forKey: name) == nil else {
        throw UsageError("\(option.setting) names \(name) twice")
      }
    }
    return values
  }
}
