/// Draws items as lines: title, bar, percent, bytes, rate, time left. Pure: the same items give the same lines.
package struct ProgressBoard: Sendable {
  /// The items, in the order of the lines.
  package var items: [ProgressItem]
  /// A last line below the items, or empty.
  package var footer: String
  /// The columns of the titles. Nil: as many as the longest one needs, within bounds.
  package var titleWidth: Int?

  package init(items: [ProgressItem] = [], footer: String = "", titleWidth: Int? = nil) {
    self.items = items
    self.footer = footer
    self.titleWidth = titleWidth
  }

  /// The values in a line besides title and bar, and the columns of each.
  private enum Figure: CaseIterable {
    case percent, bytes, rate, left, status

    var width: Int {
      switch self {
      case .percent: 4
      case .bytes, .left: 8
      case .rate, .status: 10
      }
    }
  }

  /// At most `height` lines, none wider than the terminal. If not all items fit, active ones come first.
  package func lines(on terminal: Terminal, height: Int = .max) -> [String] {
    let room = max(1, height - (footer.isEmpty ? 0 : 1))
    let shown = Self.select(items, room)
    let layout = Layout(titleWidth ?? shown.map { DisplayWidth.of($0.title) }.max() ?? 0, terminal.width)
    var lines = shown.map { line($0, layout, terminal) }
    if shown.count < items.count, !lines.isEmpty {
      let hidden = items.count - shown.count + 1
      lines[lines.count - 1] = DisplayWidth.truncate(
        "and \(hidden) more", to: terminal.width, ascii: !terminal.isUnicode)
    }
    if !footer.isEmpty { lines.append(DisplayWidth.truncate(footer, to: terminal.width, ascii: !terminal.isUnicode)) }
    return lines
  }

  /// The items that fit, active ones first. They keep their order.
  private static func select(_ items: [ProgressItem], _ room: Int) -> [ProgressItem] {
    guard items.count > room else { return items }
    let active = items.indices.filter { items[$0].phase == .active }
    let others = items.indices.filter { items[$0].phase != .active }
    return (active + others).prefix(room).sorted().map { items[$0] }
  }

  /// The widths of the parts of a line. They are the same for all lines of a frame.
  private struct Layout {
    /// On a narrow terminal the last of these is left out first.
    private static let importance: [Figure] = [.status, .percent, .rate, .left, .bytes]
    private static let shortestTitle = 8

    let title: Int
    let bar: Int
    let figures: [Figure]

    init(_ longest: Int, _ width: Int) {
      var kept = Self.importance
      while kept.count > 1, min(longest, Self.shortestTitle) + 1 + Self.width(kept) > width { kept.removeLast() }
      figures = Figure.allCases.filter(kept.contains)
      let room = width - 1 - Self.width(kept)
      title = max(1, min(longest, max(Self.shortestTitle, width / 3), room))
      bar = room - title - 1 >= 6 ? min(room - title - 1, 40) : 0
    }

    private static func width(_ figures: [Figure]) -> Int {
      figures.reduce(figures.count - 1) { $0 + $1.width }
    }
  }

  private func line(_ item: ProgressItem, _ layout: Layout, _ terminal: Terminal) -> String {
    let ascii = !terminal.isUnicode
    var words = [DisplayWidth.fit(DisplayWidth.printable(item.title), to: layout.title, ascii: ascii)]
    if layout.bar > 0 { words.append(ProgressBar(width: layout.bar, ascii: ascii).render(item.fraction)) }
    words += layout.figures.map { Self.text($0, of: item) }
    let plain = DisplayWidth.truncate(words.joined(separator: " "), to: terminal.width, ascii: ascii)
    return terminal.paint(Self.ink(item.phase), DisplayWidth.trimmingEnd(plain))
  }

  private static func text(_ figure: Figure, of item: ProgressItem) -> String {
    let text =
      switch figure {
      case .percent: item.percent
      case .bytes: item.bytesDone > 0 || item.phase == .active ? "\(ByteCount(item.bytesDone))" : ""
      case .rate: item.phase == .active ? item.rate.map { ByteCount($0).rate } ?? "" : ""
      case .left: item.eta.map { DurationText.clock(seconds: $0) } ?? ""
      case .status: item.status
      }
    let space = String(repeating: " ", count: max(0, figure.width - text.count))
    return figure == .status ? text + space : space + text
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
