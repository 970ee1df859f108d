/// The form of AWS's files: sections of names and values.
enum AWSProfiles {
  /// The members of every section, by the section's name. A member of a nested block is `block.member`. Lines that are
  /// none of these are ignored, as AWS's own tools do.
  static func parse(_ text: String) -> [String: [String: String]] {
    var sections: [String: [String: String]] = [:]
    var (section, block): (String?, String?)
    for line in text.split(whereSeparator: \.isNewline) {
      let content = line.trimmed
      guard let first = content.first, first != "#", first != ";" else { continue }
      if first == "[", let end = content.firstIndex(of: "]") {
        let words = content[content.index(after: content.startIndex)..<end].split(whereSeparator: \.isWhitespace)
        section = words.map { $0.filter { $0 != "\"" && $0 != "'" } }.joined(separator: " ")
        block = nil
      } else if let section, let equals = content.firstIndex(of: "=") {
        let name = content[..<equals].trimmed.lowercased()
        let value = content[content.index(after: equals)...].trimmed
        let isNested = line.first?.isWhitespace == true
        if !isNested { block = value.isEmpty ? name : nil }
        if isNested, let block {
          sections[section, default: [:]]["\(block).\(name)"] = value
        } else if !value.isEmpty {
          sections[section, default: [:]][name] = value
        }
      }
    }
    return sections
  }
}

extension StringProtocol {
  fileprivate var trimmed: String {
    let start = drop(while: \.isWhitespace)
    return String(start.reversed().drop(while: \.isWhitespace).reversed())
  }
}
