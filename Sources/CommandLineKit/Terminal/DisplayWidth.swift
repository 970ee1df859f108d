import ReelhaulSystem

/// The columns that text takes on a terminal.
package enum DisplayWidth {
  package static func of(_ text: some StringProtocol) -> Int {
    text.reduce(0) { $0 + of($1) }
  }

  /// Terminals show an emoji of many scalars as one picture, and of all other characters each scalar by itself: vowels of
  /// Thai and of Devanagari have columns of their own.
  static func of(_ character: Character) -> Int {
    let scalars = character.unicodeScalars
    if let first = scalars.first, first.value >= 0x300,
      scalars.contains(where: { $0.value == 0xFE0F || $0.properties.isEmojiPresentation })
    {
      return 2
    }
    return scalars.reduce(0) { $0 + of($1) }
  }

  private static func of(_ scalar: Unicode.Scalar) -> Int {
    if scalar.value < 0x300 { return 1 }
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: return 0
    default: return joinsSyllable(scalar.value) ? 0 : isWide(scalar.value) ? 2 : 1
    }
  }

  /// The vowels and last consonants that are drawn into the square of a Korean syllable's first one.
  private static func joinsSyllable(_ value: UInt32) -> Bool {
    0x1160...0x11FF ~= value || 0xD7B0...0xD7FF ~= value
  }

  /// East Asian wide and full-width blocks.
  private static func isWide(_ value: UInt32) -> Bool {
    switch value {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
      0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x20000...0x3FFFD:
      true
    default: false
    }
  }

  /// At most `width` columns of `text`. An ellipsis marks a cut.
  package static func truncate(_ text: String, to width: Int, ascii: Bool = false) -> String {
    guard of(text) > width else { return text }
    let mark = ascii ? "~" : "…"
    guard width > 0 else { return "" }
    var result = ""
    var used = 0
    for character in text {
      let next = used + of(character)
      guard next <= width - 1 else { break }
      result.append(character)
      used = next
    }
    return result + mark
  }

  /// Exactly `width` columns: cut, or padded with spaces.
  package static func fit(_ text: String, to width: Int, ascii: Bool = false) -> String {
    let cut = truncate(text, to: width, ascii: ascii)
    return cut + String(repeating: " ", count: max(0, width - of(cut)))
  }

  /// The text without spaces at its end.
  static func trimmingEnd(_ text: String) -> String {
    String(text.reversed().drop { $0 == " " }.reversed())
  }

  /// The text without control characters, with which foreign text could control the terminal.
  package static func printable(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: \.isUnsafeOnTerminal) else { return text }
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars { result.append(scalar.isUnsafeOnTerminal ? "\u{FFFD}" : scalar) }
    return String(result)
  }
}
