/// Items as lines: title, bar, percent, bytes, rate, time left. Pure: the same items give the same lines.
package struct ProgressBoard: Sendable {
  /// In the order they are drawn.
  package var items: [ProgressItem]
  /// A last line under the items, or empty.
  package var footer: String

  package init(items: [ProgressItem] = [], footer: String = "") {
    self.items = items
    self.footer = footer
  }

  private static let figures = 44

  /// At most `height` lines, none wider than the terminal. Active items come before others where not all fit.
  package func lines(on terminal: Terminal, height: Int = .max) -> [String] {
    let room = max(1, height - (footer.isEmpty ? 0 : 1))
    let shown = Self.select(items, room)
    let titleWidth = Self.titleWidth(shown, terminal.width)
    var lines = shown.map { line($0, titleWidth, terminal) }
    if shown.count < items.count, !lines.isEmpty {
      let hidden = items.count - shown.count + 1
      lines[lines.count - 1] = DisplayWidth.truncate(
        "and \(hidden) more", to: terminal.width, ascii: !terminal.isUnicode)
    }
    if !footer.isEmpty { lines.append(DisplayWidth.truncate(footer, to: terminal.width, ascii: !terminal.isUnicode)) }
    return lines
  }

  /// The items that fit: the active first, then in order; drawn in their order.
  private static func select(_ items: [ProgressItem], _ room: Int) -> [ProgressItem] {
    guard items.count > room else { return items }
    let active = items.indices.filter { items[$0].phase == .active }
    let others = items.indices.filter { items[$0].phase != .active }
    return (active + others).prefix(room).sorted().map { items[$0] }
  }

  private static func titleWidth(_ items: [ProgressItem], _ width: Int) -> Int {
    let longest = items.map { DisplayWidth.of($0.title) }.max() ?? 0
    return min(longest, max(8, width / 3))
  }

  private func line(_ item: ProgressItem, _ titleWidth: Int, _ terminal: Terminal) -> String {
    let ascii = !terminal.isUnicode
    let title = DisplayWidth.fit(DisplayWidth.printable(item.title), to: titleWidth, ascii: ascii)
    let figures = Self.figures(of: item)
    let barWidth = terminal.width - titleWidth - Self.figures - 2
    let bar = barWidth >= 6 ? ProgressBar(width: min(barWidth, 40), ascii: ascii).render(item.fraction) : ""
    let plain = [title, bar, figures].filter { !$0.isEmpty }.joined(separator: " ")
    return terminal.paint(Self.ink(item.phase), DisplayWidth.truncate(plain, to: terminal.width, ascii: ascii))
  }

  private static func figures(of item: ProgressItem) -> String {
    let percent = item.fraction.map { "\(Int($0 * 100))%" } ?? ""
    let bytes = item.bytesDone > 0 || item.phase == .active ? "\(ByteCount(item.bytesDone))" : ""
    let rate = item.phase == .active ? item.rate.map { ByteCount($0).rate } ?? "" : ""
    let left = item.eta.map { DurationText.clock(seconds: $0) } ?? ""
    return [
      right(percent, 4), right(bytes, 8), right(rate, 10), right(left, 8), DisplayWidth.fit(item.status, to: 10),
    ].joined(separator: " ")
  }

  private static func right(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
  }

  private static func ink(_ phase: ProgressItem.Phase) -> Paint.Ink {
    switch phase {
    case .waiting: .dim
    case .active: .cyan
    case .done: .green
    case .failed: .red
    case .stopped: .yellow
    }
  }
}
