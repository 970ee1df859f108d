/// Finds partitions that have records and bring none, look after look.
///
/// A precaution: should librdkafka ever fetch no more from a partition that it holds, and give no error, nothing else would
/// notice. What lies there may also be no records, but the markers of transactions: only what comes once it is fetched
/// anew tells.
struct StallDetector {
  /// Looks at one position before a partition counts as stalled.
  private static let patience = 3

  /// Nothing was left to take at some time since the last look: no partition waited behind the others' records.
  private(set) var wasIdle = false
  private var looks: [TopicPartition: (position: Int64, count: Int)] = [:]
  /// Positions and ends of those that were begun anew, until something comes.
  private var tried: [TopicPartition: (position: Int64, end: Int64)] = [:]

  /// There is nothing more to take for now.
  mutating func idle() { wasIdle = true }

  /// One look: `positions` are the next offsets of partitions that shall bring records, `ends` those after their last
  /// ones. Returns those to be begun anew, with where; each once, until its log grows. Worth it only where it ``wasIdle``.
  mutating func look(
    at positions: [TopicPartition: Int64], ends: [TopicPartition: Int64]
  ) -> [TopicPartition: Int64] {
    guard wasIdle else { return [:] }
    wasIdle = false
    var next: [TopicPartition: (position: Int64, count: Int)] = [:]
    var stalled: [TopicPartition: Int64] = [:]
    for (partition, position) in positions {
      guard let end = ends[partition], end > position else { continue }
      if let tried = tried[partition], tried == (position, end) { continue }
      let before = looks[partition].flatMap { $0.position == position ? $0.count : nil } ?? 0
      if before + 1 < Self.patience {
        next[partition] = (position, before + 1)
      } else {
        stalled[partition] = position
        tried[partition] = (position, end)
      }
    }
    looks = next
    return stalled
  }

  /// A record came. Whether it lay there already when its partition was begun anew: that was stalled.
  mutating func receive(_ partition: TopicPartition, _ offset: Int64) -> Bool {
    guard !tried.isEmpty, let tried = tried.removeValue(forKey: partition) else { return false }
    return offset < tried.end
  }
}
