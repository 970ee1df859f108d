import TaskCore

/// How a file is cut for a target.
package struct UploadPlan: Hashable, Sendable {
  /// Bytes of each segment but the last.
  package var segmentSize: Int64
  /// How many segments may be sent at once.
  package var parallel: Int
  /// Whether the server keeps what arrived of a segment that was cut off, so that it can be continued.
  package var keepsParts: Bool
  /// Whether the bytes are at the destination as soon as they are sent, without ``UploadTarget/finish(_:session:receipts:)``.
  /// Then ``UploadTarget/begin(_:)`` leaves nothing at the server.
  package var publishesAtOnce: Bool
  /// Whether the server may do something twice with a file that it gets twice. Then nothing is recorded before the whole
  /// file may be there, see ``UploadOrder/publishing``; and from then on nothing is sent again, but to a server that
  /// ``UploadTarget/knowsRepeats``.
  package var isSentOnce: Bool

  package init(
    segmentSize: Int64, parallel: Int, keepsParts: Bool = false, publishesAtOnce: Bool = false, isSentOnce: Bool = false
  ) {
    self.segmentSize = segmentSize
    self.parallel = parallel
    self.keepsParts = keepsParts
    self.publishesAtOnce = publishesAtOnce
    self.isSentOnce = isSentOnce
  }

  /// The length of the blocks of which the checkpoint has checksums, if the source is checked; they are read as a whole. A
  /// part of S3 is one. Otherwise they have 1 MiB, and one more for each 16 GiB of the file, so that there are at most
  /// 16,384.
  func block(of size: Int64) -> Int64 {
    keepsParts || publishesAtOnce ? ((size >> 34) + 1) << 20 : segmentSize
  }

  /// At least one: an empty file is one empty segment.
  package func segments(of size: Int64) -> Int { max(1, segments(before: size)) }

  /// How many segments of a file of `size` bytes are wholly in `ranges`.
  package func segments(in ranges: ByteRanges, of size: Int64) -> Int {
    ranges.ranges.reduce(0) { sum, range in
      // The last segment may be shorter.
      let end = range.upperBound >= size ? segments(of: size) : Int(range.upperBound / segmentSize)
      return sum + max(0, end - segments(before: range.lowerBound))
    }
  }

  /// How many segments begin before this offset.
  private func segments(before offset: Int64) -> Int {
    let (whole, rest) = offset.quotientAndRemainder(dividingBy: max(1, segmentSize))
    return Int(whole) + (rest == 0 ? 0 : 1)
  }

  package func range(of segment: Int, size: Int64) -> Range<Int64> {
    let start = Int64(segment) * segmentSize
    return start..<start + min(segmentSize, size - start)
  }
}
