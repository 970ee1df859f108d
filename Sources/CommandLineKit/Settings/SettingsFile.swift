/// A file of `KEY=value` lines that a shell can source. The key may follow `export`, the value may be in quotes, and a
/// line may be a comment that begins with `#`.
package enum SettingsFile {
  /// The values of the file. Throws the number of the first wrong line, and what is wrong with it.
  package static func parse(_ text: String) throws(UsageError) -> [String: String] {
    var values: [String: String] = [:]
    // Editors of Windows write a byte order mark, and line breaks "\r\n", which are one Character.
    let text = text.first == "\u{FEFF}" ? text.dropFirst() : text[...]
    let lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
    for (index, raw) in lines.enumerated() {
      var line = trim(raw)
      if line.isEmpty || line.hasPrefix("#") { continue }
      if line.hasPrefix("export ") { line = trim(line.dropFirst(7)) }
      guard let equals = line.firstIndex(of: "="), isKey(line[..<equals]) else {
        throw UsageError("line \(index + 1) is not KEY=value")
      }
      guard let value = unquote(line[line.index(after: equals)...]) else {
        throw UsageError("line \(index + 1) has an unfinished quotation")
      }
      values[String(line[..<equals])] = value
    }
    return values
  }

  /// The line that sets `key` in a shell. `value` may contain any characters.
  package static func line(_ key: String, _ value: String) -> String {
    "export \(key)=\(quoted(value))\n"
  }

  /// One word of a shell's line. `text` may contain any characters; without special ones it stays as it is.
  package static func word(_ text: String) -> String {
    text.wholeMatch(of: /[A-Za-z0-9\/._-]+/) == nil ? quoted(text) : text
  }

  private static func quoted(_ text: String) -> String {
    "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
  }

  private static func trim(_ text: Substring) -> Substring {
    var text = text
    while let last = text.last, last == " " || last == "\t" { text.removeLast() }
    return text.drop { $0 == " " || $0 == "\t" }
  }

  private static func isKey(_ text: Substring) -> Bool {
    guard let first = text.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else { return false }
    return text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
  }

  /// The shell's rules for quotes: no escapes within single quotes, a backslash within double quotes and outside
  /// quotes.
  private static func unquote(_ text: Substring) -> String? {
    var value = ""
    var quote: Character?
    var characters = text[...]
    while let character = characters.popFirst() {
      switch (character, quote) {
      case ("'", nil), ("\"", nil): quote = character
      case (let end, let open?) where end == open: quote = nil
      case ("\\", nil), ("\\", "\""):
        guard let escaped = characters.popFirst() else { return nil }
        value.append(escaped)
      default: value.append(character)
      }
    }
    return quote == nil ? value : nil
  }
}
