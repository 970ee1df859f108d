/// A file of `KEY=value` lines that a shell can source. The key may follow `export`, the value may be in quotes, and a
/// line may be a comment that begins with `#`.
package enum SettingsFile {
  /// The values of the file. Throws the number of the first wrong line, and what is wrong with it.
  package static func parse(_ text: String) throws(UsageError) -> [String: String] {
    var values: [String: String] = [:]
    // Not by Characters: "=" and a mark that combines with it would be one.
    var text = text.unicodeScalars[...]
    // Editors of Windows write a byte order mark, and line breaks "\r\n".
    if text.first == "\u{FEFF}" { text.removeFirst() }
    for (index, raw) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      var line = trim(raw.last == "\r" ? raw.dropLast() : raw)
      if line.isEmpty || line.first == "#" { continue }
      if line.starts(with: "export ".unicodeScalars) { line = trim(line.dropFirst(7)) }
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

  /// `text` in single quotes.
  private static func quoted(_ text: String) -> String {
    var word = "'"
    // Not by Characters: a quote with a combining mark is another one.
    for scalar in text.unicodeScalars { word += scalar == "'" ? "'\\''" : String(scalar) }
    return word + "'"
  }

  private typealias Text = Substring.UnicodeScalarView

  private static func isBlank(_ scalar: Unicode.Scalar) -> Bool { scalar == " " || scalar == "\t" }

  private static func trim(_ text: Text) -> Text {
    var text = text
    while let last = text.last, isBlank(last) { text.removeLast() }
    return text.drop(while: isBlank)
  }

  private static func isKey(_ text: Text) -> Bool {
    guard let first = text.first, !("0"..."9" ~= first) else { return false }
    return text.allSatisfy { $0.isASCII && ($0.properties.isAlphabetic || "0"..."9" ~= $0 || $0 == "_") }
  }

  /// The shell's rules: a backslash makes the next character ordinary outside quotes, within double quotes only those
  /// that are special there, and none within single quotes. Outside quotes a comment may follow.
  private static func unquote(_ text: Text) -> String? {
    var value = String.UnicodeScalarView()
    var quote: Unicode.Scalar?
    var rest = text
    while let scalar = rest.popFirst() {
      switch (scalar, quote) {
      case ("'", nil), ("\"", nil): quote = scalar
      case (let end, let open?) where end == open: quote = nil
      case ("\\", nil), ("\\", "\""):
        guard let escaped = rest.popFirst() else { return nil }
        if quote != nil, !"$`\"\\".unicodeScalars.contains(escaped) { value.append(scalar) }
        value.append(escaped)
      case (_, nil) where isBlank(scalar) && rest.drop(while: isBlank).first == "#": return String(value)
      default: value.append(scalar)
      }
    }
    return quote == nil ? String(value) : nil
  }
}
