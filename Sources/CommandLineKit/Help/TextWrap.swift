/// Breaks text into lines.
package enum TextWrap {
  /// Breaks at spaces so that no line is wider than `width` columns, except single words that are wider. Keeps line
  /// breaks.
  package static func lines(_ text: String, width: Int) -> [String] {
    text.split(separator: "\n", omittingEmptySubsequences: false).flatMap { paragraph(String($0), width: width) }
  }

  /// As ``lines(_:width:)``, without the other control characters.
  package static func printable(_ text: String, width: Int) -> [String] {
    text.split(separator: "\n", omittingEmptySubsequences: false).flatMap {
      paragraph(DisplayWidth.printable(String($0)), width: width)
    }
  }

  private static func paragraph(_ text: String, width: Int) -> [String] {
    var lines: [String] = []
    var line = ""
    for word in text.split(separator: " ") {
      if !line.isEmpty, DisplayWidth.of(line) + 1 + DisplayWidth.of(word) > width {
        lines.append(line)
        line = ""
      }
      line += (line.isEmpty ? "" : " ") + word
    }
    return lines + [line]
  }
}
