/// Draws frames of lines over each other on a terminal.
package struct BoardWriter: Sendable {
  private var drawn = 0

  package init() {}

  /// The bytes that replace the frame before by `lines`.
  package mutating func frame(_ lines: [String]) -> String {
    // Synchronised update, so that a terminal that knows it shows no half-drawn frame; others ignore it.
    var text = "\u{1B}[?2026h" + up()
    for line in lines { text += line + "\u{1B}[K\n" }
    text += "\u{1B}[J\u{1B}[?2026l"
    drawn = lines.count
    return text
  }

  /// The bytes that print `lines` for good above the frame, which is drawn anew by the next ``frame(_:)``.
  package mutating func above(_ lines: [String]) -> String {
    let text = up() + lines.map { $0 + "\u{1B}[K\n" }.joined() + "\u{1B}[J"
    drawn = 0
    return text
  }

  private func up() -> String { drawn > 0 ? "\r\u{1B}[\(drawn)A" : "" }
}
