/// Draws frames of lines on a terminal, each over the one before.
package struct BoardWriter: Sendable {
  /// The number of columns of each line in the present frame.
  private var drawn: [Int] = []

  package init() {}

  /// The bytes that replace the previous frame by `lines`, on a terminal of `width` columns.
  package mutating func frame(_ lines: [String], width: Int) -> String {
    // Begins a synchronised update, so that terminals that support it never show a half-drawn frame. Others ignore it.
    var text = "\u{1B}[?2026h" + up(width)
    for line in lines { text += line + "\u{1B}[K\n" }
    text += "\u{1B}[J\u{1B}[?2026l"
    drawn = lines.map(Self.columns)
    return text
  }

  /// The bytes that print `lines` permanently above the frame. The next ``frame(_:width:)`` draws the frame again.
  package mutating func above(_ lines: [String], width: Int) -> String {
    let text = up(width) + lines.map { $0 + "\u{1B}[K\n" }.joined() + "\u{1B}[J"
    drawn = []
    return text
  }

  /// Moves to the start of the frame. When a terminal becomes narrower, it wraps the lines that it shows.
  private func up(_ width: Int) -> String {
    let rows = drawn.reduce(0) { $0 + max(1, ($1 + width - 1) / max(1, width)) }
    return rows > 0 ? "\r\u{1B}[\(rows)A" : ""
  }

  /// The number of columns of a line that may contain colours.
  private static func columns(of line: String) -> Int {
    var isEscape = false
    return line.reduce(0) { columns, character in
      if character == "\u{1B}" { isEscape = true }
      defer { if isEscape, character.isLetter { isEscape = false } }
      return isEscape ? columns : columns + DisplayWidth.of(character)
    }
  }
}
