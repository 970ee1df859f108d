import ReelhaulCodec
import TaskCore

extension JSONWriter {
  /// Writes a flat list of bounds: `[0, 4096, 8192, 9000]` are two ranges.
  mutating func bounds(_ name: StaticString, of ranges: ByteRanges) {
    self.name(name)
    array { json in
      for range in ranges.ranges {
        json.integer(range.lowerBound)
        json.integer(range.upperBound)
      }
    }
  }
}

extension JSONReader {
  /// Reads what `JSONWriter.bounds` wrote.
  mutating func bounds() throws(DecodingFailure) -> ByteRanges {
    var bounds: [Int64] = []
    try array { reader, _ throws(DecodingFailure) in bounds.append(try reader.integer(0...Int64.max)) }
    var ranges = ByteRanges()
    for index in stride(from: 0, to: bounds.count, by: 2) {
      guard index + 1 < bounds.count, bounds[index] < bounds[index + 1] else {
        throw invalid("the bounds of the recorded ranges do not form pairs")
      }
      ranges.insert(bounds[index]..<bounds[index + 1])
    }
    return ranges
  }
}
