/// Rows under headings, in columns as wide as their widest cell.
package struct Table: Sendable {
  package struct Column: Sendable {
    package var title: String
    package var alignsRight: Bool
    /// Whether the column is shortened if the table is too wide.
    package var shrinks: Bool
    /// If the table is too wide, columns are left out, the lowest number first; nil: never.
    package var leaves: Int?

    package init(_ title: String, right alignsRight: Bool = false, shrinks: Bool = false, leaves: Int? = nil) {
      self.title = title
      self.alignsRight = alignsRight
      self.shrinks = shrinks
      self.leaves = leaves
    }
  }

  private let columns: [Column]
  private var rows: [[String]] = []

  package init(_ columns: [Column]) {
    self.columns = columns
  }

  /// One cell for each column; control characters are replaced.
  package mutating func add(_ cells: [String]) {
    precondition(cells.count == columns.count, "a row has \(columns.count) cells")
    rows.append(cells.map(DisplayWidth.printable))
  }

  /// Nothing is cut or left out if the output is not a terminal.
  package func lines(on terminal: Terminal) -> [String] {
    let limit = terminal.isInteractive ? terminal.width : .max
    let natural = columns.indices.map { index in
      rows.reduce(DisplayWidth.of(columns[index].title)) { max($0, DisplayWidth.of($1[index])) }
    }
    let shown = shown(natural, within: limit)
    let widths = shrunk(natural, shown, within: limit)
    let heading = line(columns.map(\.title), shown, widths, ascii: !terminal.isUnicode)
    return [terminal.paint(.bold, heading)] + rows.map { line($0, shown, widths, ascii: !terminal.isUnicode) }
  }

  private static let shortest = 8
  private static let gap = 2

  private func width(_ widths: [Int], _ shown: [Int]) -> Int {
    shown.reduce(Self.gap * (shown.count - 1)) { $0 + widths[$1] }
  }

  /// The columns that fit, each as narrow as possible.
  private func shown(_ natural: [Int], within limit: Int) -> [Int] {
    let narrowest = columns.indices.map { columns[$0].shrinks ? min(natural[$0], Self.shortest) : natural[$0] }
    var shown = Array(columns.indices)
    while width(narrowest, shown) > limit,
      let next = shown.filter({ columns[$0].leaves != nil }).min(by: {
        columns[$0].leaves ?? 0 < columns[$1].leaves ?? 0
      })
    {
      shown.removeAll { $0 == next }
    }
    return shown
  }

  private func shrunk(_ natural: [Int], _ shown: [Int], within limit: Int) -> [Int] {
    var widths = natural
    var excess = width(natural, shown) - limit
    for index in shown where columns[index].shrinks && excess > 0 {
      let cut = min(excess, max(0, widths[index] - Self.shortest))
      widths[index] -= cut
      excess -= cut
    }
    return widths
  }

  private func line(_ cells: [String], _ shown: [Int], _ widths: [Int], ascii: Bool) -> String {
    let text = shown.map { index in
      let cell = DisplayWidth.truncate(cells[index], to: widths[index], ascii: ascii)
      let space = String(repeating: " ", count: widths[index] - DisplayWidth.of(cell))
      return columns[index].alignsRight ? space + cell : cell + space
    }.joined(separator: String(repeating: " ", count: Self.gap))
    return DisplayWidth.trimmingEnd(text)
  }
}
