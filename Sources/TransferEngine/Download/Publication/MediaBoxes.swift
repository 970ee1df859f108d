/// The boxes of an ISO base media file (MP4, QuickTime), which show whether the file was cut. Pure: it reads through
/// `read`, in pieces of at most 64 KiB.
///
/// Every box says how long it is. So a cut file ends within a box, or lacks one that the others refer to.
struct MediaBoxes<Failure: Error> {
  /// The length of the file in bytes.
  let size: Int64
  /// Reads a part of the file: fewer bytes, if the file ends before.
  let read: (Range<Int64>) throws(Failure) -> [UInt8]
  /// How many boxes may still be looked at. A hostile file could have billions.
  private var budget = 1 << 18

  init(size: Int64, read: @escaping (Range<Int64>) throws(Failure) -> [UInt8]) {
    self.size = size
    self.read = read
  }

  private struct Box {
    let type: UInt32
    /// The bytes after the header.
    let content: Range<Int64>
  }

  /// Whether the boxes prove that no byte is missing: the first is `ftyp`, the last one ends with the file, and all
  /// chunks that the one `moov` refers to begin in an `mdat`. A box that reaches to the end of the file wherever that is
  /// proves nothing, and neither do the fragments of a live recording, which may be cut between any two. Only a box at
  /// the end that no track refers to may be missing.
  mutating func addUp() throws(Failure) -> Bool {
    guard let boxes = try boxes(in: 0..<size), boxes.first?.type == Self.ftyp else { return false }
    let movies = boxes.filter { $0.type == Self.moov }
    guard movies.count == 1, movies[0].content.count <= Self.longestMovie,
      !boxes.contains(where: { $0.type == Self.moof })
    else { return false }
    let media = boxes.filter { $0.type == Self.mdat }.map(\.content)
    return try refers(movies[0], below: Self.path[...], onlyTo: media)
  }

  /// The boxes of a part of the file; `nil` if they do not fill it exactly, or if one of them has no length of its own.
  private mutating func boxes(in range: Range<Int64>) throws(Failure) -> [Box]? {
    var boxes: [Box] = []
    var offset = range.lowerBound
    while offset < range.upperBound {
      let left = UInt64(range.upperBound - offset)
      let header = try read(offset..<offset + Int64(min(left, 16)))
      guard budget > 0, header.count >= 8 else { return nil }
      budget -= 1
      var (length, start) = (Self.number(header[..<4]), UInt64(8))
      if length == 1 {
        guard header.count == 16 else { return nil }
        (length, start) = (Self.number(header[8...]), 16)
      }
      guard length >= start, length <= left else { return nil }
      let end = offset + Int64(length)
      boxes.append(Box(type: UInt32(Self.number(header[4..<8])), content: offset + Int64(start)..<end))
      offset = end
    }
    return boxes
  }

  /// Whether every box along `path` within `parent` is there, and every chunk that they refer to begins in `media`.
  private mutating func refers(
    _ parent: Box, below path: ArraySlice<UInt32>, onlyTo media: [Range<Int64>]
  ) throws(Failure) -> Bool {
    guard let boxes = try boxes(in: parent.content), !boxes.contains(where: { $0.type == Self.mvex }) else {
      return false
    }
    guard let next = path.first else {
      let tables = boxes.filter { $0.type == Self.stco || $0.type == Self.co64 }
      guard tables.count == 1 else { return false }
      return try chunks(of: tables[0], beginIn: media)
    }
    let children = boxes.filter { $0.type == next }
    guard !children.isEmpty else { return false }
    for child in children where try !refers(child, below: path.dropFirst(), onlyTo: media) { return false }
    return true
  }

  /// Whether the table of a track's chunks names only places in `media`, which are in order.
  private func chunks(of table: Box, beginIn media: [Range<Int64>]) throws(Failure) -> Bool {
    let width = table.type == Self.co64 ? 8 : 4
    let head = try read(table.content.prefix(8))
    guard head.count == 8 else { return false }
    let count = Int64(Self.number(head[4...]))
    guard Int64(table.content.count) - 8 == count * Int64(width) else { return false }
    var offset = table.content.lowerBound + 8
    var current = 0..<Int64(0)
    while offset < table.content.upperBound {
      let piece = try read((offset..<table.content.upperBound).prefix(Self.piece))
      guard !piece.isEmpty, piece.count.isMultiple(of: width) else { return false }
      for index in stride(from: 0, to: piece.count, by: width) {
        guard let chunk = Int64(exactly: Self.number(piece[index..<index + width])) else { return false }
        if current.contains(chunk) { continue }
        guard let found = Self.range(of: chunk, in: media) else { return false }
        current = found
      }
      offset += Int64(piece.count)
    }
    return true
  }

  private static func range(of offset: Int64, in ranges: [Range<Int64>]) -> Range<Int64>? {
    var (low, high) = (0, ranges.count)
    while low < high {
      let middle = (low + high) / 2
      if ranges[middle].upperBound <= offset { low = middle + 1 } else { high = middle }
    }
    return low < ranges.count && ranges[low].contains(offset) ? ranges[low] : nil
  }

  /// Big-endian; at most 8 bytes.
  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// A `moov` of a film of hours has some megabytes. A hostile one is not read to its end.
  private static var longestMovie: Int { 256 << 20 }
  private static var piece: Int { 64 << 10 }

  /// From `moov` to the table of a track's chunks.
  private static var path: [UInt32] { [name("trak"), name("mdia"), name("minf"), name("stbl")] }
  private static var ftyp: UInt32 { name("ftyp") }
  private static var moov: UInt32 { name("moov") }
  private static var moof: UInt32 { name("moof") }
  private static var mdat: UInt32 { name("mdat") }
  private static var mvex: UInt32 { name("mvex") }
  private static var stco: UInt32 { name("stco") }
  private static var co64: UInt32 { name("co64") }

  private static func name(_ text: StaticString) -> UInt32 {
    UInt32(number(text.withUTF8Buffer { Array($0) }[...]))
  }
}
