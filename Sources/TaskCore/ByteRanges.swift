/// A set of byte offsets as sorted, disjoint, non-adjacent, half-open ranges: PostgreSQL's `int8multirange`.
public struct ByteRanges: Hashable, Sendable {
  public private(set) var ranges: [Range<Int64>] = []

  public init() {}

  /// The number of bytes in the set.
  public var count: Int64 { ranges.reduce(0) { $0 + Int64($1.count) } }

  public mutating func insert(_ range: Range<Int64>) {
    guard !range.isEmpty else { return }
    let first = ranges.firstIndex { $0.upperBound >= range.lowerBound } ?? ranges.endIndex
    let end = ranges[first...].firstIndex { $0.lowerBound > range.upperBound } ?? ranges.endIndex
    guard first < end else {
      ranges.insert(range, at: first)
      return
    }
    let lower = min(range.lowerBound, ranges[first].lowerBound)
    let upper = max(range.upperBound, ranges[end - 1].upperBound)
    ranges.replaceSubrange(first..<end, with: CollectionOfOne(lower..<upper))
  }
}
