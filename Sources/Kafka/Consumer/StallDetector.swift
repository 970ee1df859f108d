/// Finds partitions that have records and bring none, look after look.
///
/// librdkafka 2.0 has been seen to fetch no more from a partition that it holds, without an error.
struct StallDetector {
  /// Looks at one position before a partition counts as stalled.
  private static let patience = 3

  private var looks: [TopicPartition: (position: Int64, count: Int)] = [:]

  /// One look: `positions` are the next offsets of partitions that shall bring records, `ends` those after their last
  /// ones. Returns the stalled ones with where to begin anew.
  mutating func look(
    at positions: [TopicPartition: Int64], ends: [TopicPartition: Int64]
  ) -> [TopicPartition: Int64] {
    var next: [TopicPartition: (position: Int64, count: Int)] = [:]
    var stalled: [TopicPartition: Int64] = [:]
    for (partition, position) in positions {
      guard let end = ends[partition], end > position else { continue }
      let before = looks[partition].flatMap { $0.position == position ? $0.count : nil } ?? 0
      if before + 1 < Self.patience {
        next[partition] = (position, before + 1)
      } else {
        stalled[partition] = position
      }
    }
    looks = next
    return stalled
  }
}
