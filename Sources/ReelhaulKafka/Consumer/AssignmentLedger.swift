/// Which partitions a group member has, which offset each goes on with, and which offsets it may still commit.
///
/// Offsets of an assignment that has ended are never committed: the partition's new owner may be further on.
struct AssignmentLedger {
  private struct Entry {
    /// Counts assignments, so that a partition that went away and came back is told from one that stayed.
    let epoch: Int
    var position: ReadPosition
    /// The ends of what was handed out since, of what of it is done, and of what is committed.
    var handedOut: Int64 = -1
    var done: Int64 = -1
    var committed: Int64 = -1
    /// The group has an offset of it.
    var isKnown: Bool
    /// The furthest offset that the group had before, or has from here; `nil`: it has not told yet. One that is further
    /// than this and than what was handed out is of another log: the topic's before it was deleted and made again.
    var told: Int64?
    /// Where its log begins, if that is the first thing to commit.
    var start: Int64?
    var isRevoked = false
  }

  private var entries: [TopicPartition: Entry] = [:]
  private var epochs = 0

  var partitions: [TopicPartition] { entries.filter { !$0.value.isRevoked }.map(\.key) }

  var isEmpty: Bool { entries.isEmpty }

  /// With those being revoked, of which something may still be committed.
  var held: [TopicPartition] { Array(entries.keys) }

  /// `answer`: what the group says of them; `nil` where it did not.
  mutating func assign(_ partitions: [TopicPartition], _ answer: GroupAnswer.Offsets?) {
    epochs += 1
    for partition in partitions {
      let offset = answer?.committed[partition]
      entries[partition] = Entry(
        epoch: epochs, position: ReadPosition(offset), isKnown: offset != nil, told: answer == nil ? nil : offset ?? -1,
        start: answer?.starts[partition])
    }
  }

  /// The next offsets, as far as known.
  var positions: [TopicPartition: Int64] { entries.compactMapValues(\.position.expected) }

  /// Whether the group must have an offset of it.
  func isKnown(_ partition: TopicPartition) -> Bool { entries[partition]?.isKnown == true }

  /// Takes in what the group says, and returns the partitions to ``restart(_:)``: their offset is gone or is not theirs.
  mutating func learn(_ answer: GroupAnswer.Offsets) -> [TopicPartition] {
    let absent = Set(answer.absent)
    return entries.compactMap { partition, entry in
      let offset = answer.committed[partition]
      guard offset != nil || absent.contains(partition) else { return nil }
      let told = entry.told ?? offset ?? -1
      entries[partition]?.told = told
      if let offset, offset <= max(told, entry.handedOut) {
        entries[partition]?.isKnown = true
        return nil
      }
      entries[partition]?.start = answer.starts[partition]
      return entry.isKnown ? partition : nil
    }
  }

  /// Notes that nothing up to there is needed again; of an assignment that has ended nothing is noted.
  mutating func done(_ range: KafkaBatch.Range) {
    guard let entry = entries[range.partition], entry.epoch == range.epoch else { return }
    entries[range.partition]?.done = max(entry.done, range.next)
  }

  var hasUncommitted: Bool { entries.values.contains { $0.done > $0.committed || !$0.isKnown && $0.start != nil } }

  /// What there is to commit. The first thing of each partition is where it begins: only an offset that was there can be
  /// found missing.
  var uncommitted: [KafkaBatch.Range] {
    entries.compactMap { partition, entry in
      let next = entry.isKnown ? entry.done : entry.start ?? -1
      return next > entry.committed ? KafkaBatch.Range(partition: partition, next: next, epoch: entry.epoch) : nil
    }
  }

  /// Forgets what was read of these partitions, and returns those to be read anew: not those being revoked.
  mutating func restart(_ partitions: [TopicPartition]) -> [TopicPartition] {
    let staying = partitions.filter { entries[$0]?.isRevoked == false }
    remove(partitions)
    assign(staying, GroupAnswer.Offsets(absent: staying))
    return staying
  }

  /// `nil`: drop the record; its partition is going or gone, and the next owner reads it again.
  mutating func receive(
    _ partition: TopicPartition, _ offset: Int64, logStart: @autoclosure () -> Int64
  ) -> ReadPosition.Reception? {
    guard entries[partition]?.isRevoked == false else { return nil }
    return entries[partition]?.position.receive(offset, logStart: logStart())
  }

  /// Notes that `records` are now with the consumer's task, and returns what committing them means.
  mutating func handOut(_ records: some Sequence<KafkaRecord>) -> [KafkaBatch.Range] {
    var ranges: [KafkaBatch.Range] = []
    var indices: [TopicPartition: Int] = [:]
    for record in records {
      let partition = record.topicPartition
      if let index = indices[partition] {
        ranges[index].next = record.offset + 1
      } else if let entry = entries[partition] {
        indices[partition] = ranges.count
        ranges.append(KafkaBatch.Range(partition: partition, next: record.offset + 1, epoch: entry.epoch))
      }
    }
    for range in ranges { entries[range.partition]?.handedOut = range.next }
    return ranges
  }

  mutating func committed(_ range: KafkaBatch.Range) {
    guard let entry = entries[range.partition], entry.epoch == range.epoch else { return }
    entries[range.partition]?.committed = max(entry.committed, range.next)
    entries[range.partition]?.told = max(entry.told ?? -1, range.next)
    entries[range.partition]?.isKnown = true
  }

  /// Takes no more records of these partitions; what was handed out may still be committed until ``remove(_:)``.
  mutating func revoke(_ partitions: [TopicPartition]) {
    for partition in partitions { entries[partition]?.isRevoked = true }
  }

  /// Those of the partitions that have records handed out and not committed.
  func busy(_ partitions: [TopicPartition]) -> [TopicPartition] {
    partitions.filter { entries[$0].map { $0.handedOut > $0.committed } ?? false }
  }

  mutating func remove(_ partitions: [TopicPartition]) {
    for partition in partitions { entries[partition] = nil }
  }
}
