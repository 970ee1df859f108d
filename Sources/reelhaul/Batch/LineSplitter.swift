/// Cuts blocks of bytes into lines. A line that exceeds the limit is dropped at once and reported as too long.
struct LineSplitter {
  struct Line: Hashable, Sendable {
    /// The line number, from 1.
    var number: Int
    /// The line without its line break; nil if it is too long.
    var bytes: [UInt8]?
  }

  private let limit: Int
  private var number = 0
  private var rest: [UInt8] = []
  private var isTooLong = false

  /// `limit` is the greatest length of a line in bytes.
  init(limit: Int) {
    self.limit = limit
  }

  /// The lines that end within `block`, in order. Empty lines are counted but not returned.
  mutating func add(_ block: UnsafeRawBufferPointer) -> [Line] {
    var lines: [Line] = []
    var start = block.startIndex
    while let end = block[start...].firstIndex(of: UInt8(ascii: "\n")) {
      extend(by: block[start..<end])
      take(into: &lines)
      start = end + 1
    }
    extend(by: block[start...])
    return lines
  }

  /// The last line, if the input does not end with a line break.
  mutating func finish() -> [Line] {
    var lines: [Line] = []
    if !rest.isEmpty || isTooLong { take(into: &lines) }
    return lines
  }

  private mutating func extend(by bytes: Slice<UnsafeRawBufferPointer>) {
    guard !isTooLong, !bytes.isEmpty else { return }
    if rest.count + bytes.count > limit {
      isTooLong = true
      rest = []
    } else {
      rest.append(contentsOf: bytes)
    }
  }

  private mutating func take(into lines: inout [Line]) {
    number += 1
    // The byte order mark that some editors begin a file with.
    if number == 1, rest.starts(with: "\u{FEFF}".utf8) { rest.removeFirst(3) }
    if rest.last == UInt8(ascii: "\r") { rest.removeLast() }
    if isTooLong {
      lines.append(Line(number: number, bytes: nil))
    } else if rest.contains(where: { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }) {
      lines.append(Line(number: number, bytes: rest))
    }
    rest = []
    isTooLong = false
  }
}
