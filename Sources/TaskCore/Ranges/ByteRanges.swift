/// A set of byte offsets as sorted, disjoint, non-adjacent, half-open ranges, like PostgreSQL's `int8multirange`.
public struct ByteRanges: Hashable, Sendable {
  public private(set) var ranges: [Range<Int64>] = []

  public init() {}

  public init(_ range: Range<Int64>) {
    insert(range)
  }

  public init(_ ranges: some Sequence<Range<Int64>>) {
    for range in ranges { insert(range) }
  }

  public var isEmpty: Bool { ranges.isEmpty }

  /// The number of bytes in the set.
  public var count: Int64 { ranges.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) } }

  /// The end of the bytes that reach from offset 0 without a gap; 0 if the first byte is missing.
  public var prefixEnd: Int64 {
    guard let first = ranges.first, first.lowerBound <= 0 else { return 0 }
    return first.upperBound
  }

  /// The offset behind the last byte; 0 for an empty set.
  public var end: Int64 { ranges.last?.upperBound ?? 0 }

  public func contains(_ offset: Int64) -> Bool {
    let index = firstIndex(endingAfter: offset)
    return index < ranges.endIndex && ranges[index].lowerBound <= offset
  }

  /// Whether every byte of `range` is in the set; an empty range always is.
  public func contains(_ range: Range<Int64>) -> Bool {
    guard !range.isEmpty else { return true }
    let index = firstIndex(endingAfter: range.lowerBound)
    return index < ranges.endIndex && ranges[index].lowerBound <= range.lowerBound
      && ranges[index].upperBound >= range.upperBound
  }

  /// The parts of `range` that are not in the set.
  public func missing(in range: Range<Int64>) -> ByteRanges {
    var missing = ByteRanges(range)
    missing.subtract(self)
    return missing
  }

  // MARK: Changes

  public mutating func insert(_ range: Range<Int64>) {
    guard !range.isEmpty else { return }
    // Ranges that overlap the new one or touch it become one with it.
    let first = firstIndex(endingAfter: range.lowerBound - 1)
    let end = firstIndex(beginningAfter: range.upperBound, from: first)
    guard first < end else {
      ranges.insert(range, at: first)
      return
    }
    let lower = min(range.lowerBound, ranges[first].lowerBound)
    let upper = max(range.upperBound, ranges[end - 1].upperBound)
    ranges.replaceSubrange(first..<end, with: CollectionOfOne(lower..<upper))
  }

  public mutating func remove(_ range: Range<Int64>) {
    guard !range.isEmpty else { return }
    let first = firstIndex(endingAfter: range.lowerBound)
    let end = firstIndex(beginningAfter: range.upperBound - 1, from: first)
    guard first < end else { return }
    let left = ranges[first].lowerBound..<max(ranges[first].lowerBound, range.lowerBound)
    let right = min(ranges[end - 1].upperBound, range.upperBound)..<ranges[end - 1].upperBound
    ranges.replaceSubrange(first..<end, with: [left, right].filter { !$0.isEmpty })
  }

  public mutating func formUnion(_ other: ByteRanges) {
    for range in other.ranges { insert(range) }
  }

  public mutating func subtract(_ other: ByteRanges) {
    for range in other.ranges { remove(range) }
  }

  public func subtracting(_ other: ByteRanges) -> ByteRanges {
    var result = self
    result.subtract(other)
    return result
  }

  public func intersection(_ other: ByteRanges) -> ByteRanges {
    subtracting(subtracting(other))
  }

  // MARK: Search

  /// The first range whose end lies beyond `offset`.
  private func firstIndex(endingAfter offset: Int64) -> Int {
    partitionPoint(from: 0) { $0.upperBound > offset }
  }

  private func firstIndex(beginningAfter offset: Int64, from start: Int) -> Int {
    partitionPoint(from: start) { $0.lowerBound > offset }
  }

  /// The first index from `start` on for which `holds` is true. It must be false for all indices before, and true for
  /// all after.
  private func partitionPoint(from start: Int, where holds: (Range<Int64>) -> Bool) -> Int {
    var (low, high) = (start, ranges.endIndex)
    while low < high {
      let middle = (low + high) / 2
      if holds(ranges[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
