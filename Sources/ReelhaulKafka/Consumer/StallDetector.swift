/// Finds partitions that have records but do not deliver them, by looking repeatedly.
///
/// This is a precaution: if librdkafka ever stopped fetching from a partition without an error, nothing else would
/// notice. The unread offsets may also be markers of transactions instead of records. Only fetching again shows the
/// difference.
struct StallDetector {
  /// The looks at one position before a partition counts as stalled.
  private static let patience = 3

  /// Whether the queue was empty at some time since the last look, so that no partition waited behind records of
  /// others.
  private(set) var wasIdle = false
  private var looks: [TopicPartition: (position: Int64, count: Int)] = [:]
  /// Positions and log ends of the partitions that were fetched again, until a record comes.
  private var tried: [TopicPartition: (position: Int64, end: Int64)] = [:]

  /// Notes that there is nothing more to take for now.
  mutating func idle() { wasIdle = true }

  /// Notes that there is more than can be taken: partitions may wait behind others for long.
  mutating func full() { looks = [:] }

  /// One look. `positions` are the next offsets of partitions that should deliver records; `ends` are the offsets
  /// after their last records. Returns the partitions to fetch again, with the offset; each only once until its log
  /// grows. Only useful if the consumer ``wasIdle``.
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

  /// A record came. Returns whether it was already there when its partition was fetched again: then the partition had
  /// stalled.
  mutating func receive(_ partition: TopicPartition, _ offset: Int64) -> Bool {
    guard !tried.isEmpty, let tried = tried.removeValue(forKey: partition) else { return false }
    return offset < tried.end
  }
}
