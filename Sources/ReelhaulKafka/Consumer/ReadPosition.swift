/// How far a partition has been read, and what to do with the next record.
///
/// librdkafka sometimes delivers another record than the next one. Its position may be gone from the log (then
/// `auto.offset.reset` continues at the earliest record), or it has lost its place: librdkafka 2.0 restarts a
/// partition at the offset of its last start, seek or pause if it is resumed without being paused (its issue 2593).
struct ReadPosition {
  enum Reception: Equatable {
    case accept
    /// Drop the record, and go to this offset first.
    case seek(Int64)
    /// Accept the record. The records from `expected` on are gone from the log.
    case gap(expected: Int64)
  }

  /// The next offset; nil until the first record.
  private(set) var expected: Int64?
  /// The offset that was sought because another record came instead of it.
  private var sought: Int64?
  /// Offsets without a record are normal here: the topic is compacted, or transactions end with a marker.
  private var hasHoles = false

  init(_ expected: Int64? = nil) {
    self.expected = expected
  }

  /// `logStart` is the earliest offset in the log. It is looked up only if another record comes than the next one.
  mutating func receive(_ offset: Int64, logStart: @autoclosure () -> Int64) -> Reception {
    let reception = judge(offset, logStart)
    if case .seek(let target) = reception {
      sought = target
    } else {
      expected = offset + 1
      sought = nil
    }
    return reception
  }

  /// Notes that the partition ends at `offset`: only marks of transactions lie behind the records that came. Returns where
  /// they begin; nil if there are none, or if records may have been lost there.
  mutating func end(at offset: Int64, logStart: @autoclosure () -> Int64) -> Int64? {
    guard let expected, sought == nil, offset > expected, expected >= logStart() else { return nil }
    self.expected = offset
    return expected
  }

  private mutating func judge(_ offset: Int64, _ logStart: () -> Int64) -> Reception {
    guard let expected, offset != expected else { return .accept }
    if offset > expected {
      // Where there are markers, a single offset without a record is that of one.
      if !(hasHoles && offset == expected + 1), expected < logStart() { return .gap(expected: expected) }
      if hasHoles { return .accept }
    }
    guard sought == expected else { return .seek(expected) }
    // The seek did not help: the record does not exist, or the log began again.
    hasHoles = offset > expected
    return .accept
  }
}
