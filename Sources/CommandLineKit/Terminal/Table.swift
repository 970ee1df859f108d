/// Rows under headings, in columns as wide as their widest cell.
package struct Table: Sendable {
  package struct Column: Sendable {
    package var title: String
    package var alignsRight: Bool
    /// Cut to what is left where the table would be too wide.
    package var shrinks: Bool

    package init(_ title: String, right alignsRight: Bool = false, shrinks: Bool = false) {
      self.title = title
      self.alignsRight = alignsRight
      self.shrinks = shrinks
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

  /// Off a terminal nothing is cut.
  package func lines(on terminal: Terminal) -> [String] {
    let widths = widths(within: terminal.isInteractive ? terminal.width : .max)
    let heading = line(columns.map(\.title), widths, ascii: !terminal.isUnicode)
    return [terminal.paint(.bold, heading)] + rows.map { line($0, widths, ascii: !terminal.isUnicode) }
  }

  private func widths(within limit: Int) -> [Int] {
    var widths = columns.indices.map { index in
      rows.reduce(DisplayWidth.of(columns[index].title)) { max($0, DisplayWidth.of($1[index])) }
    }
    var excess = widths.reduce(0, +) + 2 * (columns.count - 1) - limit
    for index in columns.indices where columns[index].shrinks && excess > 0 {
      let cut = min(excess, max(0, widths[index] - 8))
      widths[index] -= cut
      excess -= cut
    }
    return widths
  }

  private func line(_ cells: [String], _ widths: [Int], ascii: Bool) -> String {
    let text = columns.indices.map { index in
      let cell = DisplayWidth.truncate(cells[index], to: widths[index], ascii: ascii)
      let space = String(repeating: " ", count: widths[index] - DisplayWidth.of(cell))
      return columns[index].alignsRight ? space + cell : cell + space
    }.joined(separator: "  ")
    return String(text.reversed().drop { $0 == " " }.reversed())
  }
}
