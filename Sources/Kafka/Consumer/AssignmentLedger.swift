/// Which partitions a group member has, which offset each goes on with, and which offsets it may still commit.
///
/// Offsets of an assignment that has ended are never committed: the partition's new owner may be further on.
struct AssignmentLedger {
  private struct Entry {
    /// Counts assignments, so that a partition that went away and came back is told from one that stayed.
    let epoch: Int
    var position: ReadPosition
    /// The ends of what was handed out and of what was committed since.
    var handedOut: Int64 = -1
    var committed: Int64 = -1
    /// The group has an offset of it.
    var isKnown: Bool
    var isRevoked = false
  }

  private var entries: [TopicPartition: Entry] = [:]
  private var epochs = 0

  var partitions: [TopicPartition] { entries.filter { !$0.value.isRevoked }.map(\.key) }

  /// With those being revoked, of which something may still be committed.
  var held: [TopicPartition] { Array(entries.keys) }

  /// `committed`: the group's offsets where they are known.
  mutating func assign(_ partitions: [TopicPartition], committed: [TopicPartition: Int64] = [:]) {
    epochs += 1
    for partition in partitions {
      let offset = committed[partition]
      entries[partition] = Entry(epoch: epochs, position: ReadPosition(offset), isKnown: offset != nil)
    }
  }

  /// The next offsets, as far as known.
  var positions: [TopicPartition: Int64] { entries.compactMapValues(\.position.expected) }

  /// Whether the group must have an offset of it.
  func isKnown(_ partition: TopicPartition) -> Bool { entries[partition]?.isKnown == true }

  /// The group has an offset of it.
  mutating func learn(_ partition: TopicPartition) {
    entries[partition]?.isKnown = true
  }

  /// What committing these offsets means.
  func ranges(from offsets: [TopicPartition: Int64]) -> [KafkaBatch.Range] {
    offsets.compactMap { partition, offset in
      entries[partition].map { KafkaBatch.Range(partition: partition, next: offset, epoch: $0.epoch) }
    }
  }

  /// Forgets what was read of these partitions, and returns those to be read anew: not those being revoked.
  mutating func restart(_ partitions: [TopicPartition]) -> [TopicPartition] {
    let staying = partitions.filter { entries[$0]?.isRevoked == false }
    remove(partitions)
    assign(staying)
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

  /// Whether the range's assignment still stands. A partition being revoked is still this member's.
  func owns(_ range: KafkaBatch.Range) -> Bool {
    entries[range.partition]?.epoch == range.epoch
  }

  /// Whether this, or more of the same assignment, is committed.
  func isCommitted(_ range: KafkaBatch.Range) -> Bool {
    entries[range.partition].map { $0.epoch == range.epoch && $0.committed >= range.next } ?? false
  }

  mutating func committed(_ range: KafkaBatch.Range) {
    guard owns(range), let entry = entries[range.partition] else { return }
    entries[range.partition]?.committed = max(entry.committed, range.next)
    entries[range.partition]?.isKnown = true
  }

  /// Takes no more records of these partitions; what was handed out may still be committed until ``remove(_:)``.
  mutating func revoke(_ partitions: [TopicPartition]) {
    for partition in partitions { entries[partition]?.isRevoked = true }
  }

  /// Whether one of the partitions has records handed out and not committed.
  func isBusy(_ partitions: [TopicPartition]) -> Bool {
    partitions.contains { entries[$0].map { $0.handedOut > $0.committed } ?? false }
  }

  mutating func remove(_ partitions: [TopicPartition]) {
    for partition in partitions { entries[partition] = nil }
  }
}
