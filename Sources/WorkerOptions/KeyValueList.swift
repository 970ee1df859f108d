import CommandLineKit

/// `name=value,name=value`
package enum KeyValueList {
  package static func parse(_ text: String, of option: OptionSpec) throws(UsageError) -> [String: String] {
    var values: [String: String] = [:]
    if text.isEmpty { return values }
    for pair in CommaList.parse(text) ?? [""] {
      guard let equals = pair.firstIndex(of: "="), equals > pair.startIndex else {
        throw UsageError("\(option.setting) must be \(option.valueName), not \"\(text)\"")
      }
      let name = String(pair[..<equals])
      guard values.updateValue(String(pair[pair.index(after: equals)...]), forKey: name) == nil else {
        throw UsageError("\(option.setting) names \(name) twice")
      }
    }
    return values
  }
}
