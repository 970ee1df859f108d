/// Draws frames of lines over each other on a terminal.
package struct BoardWriter: Sendable {
  /// The columns of each line of the frame that stands there.
  private var drawn: [Int] = []

  package init() {}

  /// The bytes that replace the frame before by `lines`, on a terminal of `width` columns.
  package mutating func frame(_ lines: [String], width: Int) -> String {
    // Synchronised update, so that a terminal that knows it shows no half-drawn frame; others ignore it.
    var text = "\u{1B}[?2026h" + up(width)
    for line in lines { text += line + "\u{1B}[K\n" }
    text += "\u{1B}[J\u{1B}[?2026l"
    drawn = lines.map(Self.columns)
    return text
  }

  /// The bytes that print `lines` for good above the frame, which is drawn anew by the next ``frame(_:width:)``.
  package mutating func above(_ lines: [String], width: Int) -> String {
    let text = up(width) + lines.map { $0 + "\u{1B}[K\n" }.joined() + "\u{1B}[J"
    drawn = []
    return text
  }

  /// To the start of the frame. Terminals wrap what stands there when they are made narrower.
  private func up(_ width: Int) -> String {
    let rows = drawn.reduce(0) { $0 + max(1, ($1 + width - 1) / max(1, width)) }
    return rows > 0 ? "\r\u{1B}[\(rows)A" : ""
  }

  /// Of a line that may be painted.
  private static func columns(of line: String) -> Int {
    var isEscape = false
    return line.reduce(0) { columns, character in
      if character == "\u{1B}" { isEscape = true }
      defer { if isEscape, character.isLetter { isEscape = false } }
      return isEscape ? columns : columns + DisplayWidth.of(character)
    }
  }
}
