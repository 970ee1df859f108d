import ReelhaulSystem
import TaskCore
import Testing

struct ByteRangesTests {
  /// The model is a plain set of offsets.
  @Test("byte ranges behave like a set of offsets", arguments: 0..<50 as Range<UInt64>)
  func behavesLikeASet(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    var ranges = ByteRanges()
    var model: Set<Int64> = []
    func range() -> Range<Int64> {
      let lower = Int64.random(in: 0..<60, using: &generator)
      return lower..<(lower + Int64.random(in: 0..<12, using: &generator))
    }
    for _ in 0..<100 {
      let change = range()
      if Bool.random(using: &generator) {
        ranges.insert(change)
        model.formUnion(change)
      } else {
        ranges.remove(change)
        model.subtract(change)
      }
      #expect(ranges.count == Int64(model.count))
      #expect(Set(ranges.ranges.flatMap { $0 }) == model)
      #expect(zip(ranges.ranges, ranges.ranges.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound })
      let probe = range()
      #expect(ranges.contains(probe) == probe.allSatisfy(model.contains))
      #expect(ranges.contains(probe.lowerBound) == model.contains(probe.lowerBound))
      #expect(Set(ranges.missing(in: probe).ranges.flatMap { $0 }) == Set(probe).subtracting(model))
      let other = ByteRanges([range(), range()])
      let otherModel = Set(other.ranges.flatMap { $0 })
      #expect(Set(ranges.intersection(other).ranges.flatMap { $0 }) == model.intersection(otherModel))
      var union = ranges
      union.formUnion(other)
      #expect(Set(union.ranges.flatMap { $0 }) == model.union(otherModel))
      let prefix = (0...).lazy.map(Int64.init).first { !model.contains($0) }
      #expect(ranges.prefixEnd == prefix)
      #expect(ranges.end == (model.max().map { $0 + 1 } ?? 0))
    }
  }
}
