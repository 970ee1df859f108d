/// The partitions of a group member, the offset at which each continues, and the offsets that it may still commit.
///
/// Offsets of an ended assignment are never committed, because the partition's new owner may have read further.
struct AssignmentLedger {
  private struct Entry {
    /// Counts assignments, to distinguish a partition that left and came back from one that stayed.
    let epoch: Int
    var position: ReadPosition
    /// The end of the records handed out since the assignment.
    var handedOut: Int64 = -1
    /// The end of what is done, and of what is committed.
    var done: Int64
    var committed: Int64
    /// Whether the group has an offset of this partition.
    var isKnown: Bool
    /// The largest offset that the group had before, or got from here; nil if the group has not answered yet. An
    /// offset that is larger than this and than all records handed out belongs to another log: the topic was deleted
    /// and created again.
    var told: Int64?
    /// The offset where the log begins, if this must be committed first.
    var start: Int64?
    /// The offsets behind the last record that have marks of transactions alone.
    var marks: Range<Int64>?
    var isRevoked = false

    /// If all records are done, so are the marks behind them.
    mutating func passMarks() {
      guard let marks, done >= marks.lowerBound else { return }
      done = max(done, marks.upperBound)
      self.marks = nil
    }
  }

  private var entries: [TopicPartition: Entry] = [:]
  private var epochs = 0
  /// Whether others may read and commit the same partitions. Then a larger offset of the group is theirs, and a smaller
  /// one is not committed.
  var isShared = false

  var partitions: [TopicPartition] { entries.filter { !$0.value.isRevoked }.map(\.key) }

  var isEmpty: Bool { entries.isEmpty }

  /// All partitions, including those being revoked, for which offsets may still be committed.
  var held: [TopicPartition] { Array(entries.keys) }

  /// `answer`: the group's offsets of these partitions; nil if the group did not answer. Where the records behind an
  /// offset are gone, the log's beginning is read next, and committed, so that nobody notices the gap again.
  mutating func assign(_ partitions: [TopicPartition], _ answer: GroupAnswer.Offsets?) {
    epochs += 1
    for partition in partitions {
      let offset = answer?.committed[partition]
      // The group may have told nothing of single partitions.
      let isTold = offset != nil || answer?.absent.contains(partition) == true
      let start = isTold ? answer?.starts[partition] : nil
      let isGone = answer?.gone[partition] != nil
      entries[partition] = Entry(
        epoch: epochs, position: ReadPosition(isGone ? start : offset), done: (isGone ? start : offset) ?? -1,
        committed: isGone ? -1 : offset ?? -1, isKnown: offset != nil, told: isTold ? offset ?? -1 : nil, start: start)
    }
  }

  /// The next offsets, as far as they are known.
  var positions: [TopicPartition: Int64] { entries.compactMapValues(\.position.expected) }

  /// Whether the group must have an offset of this partition.
  func isKnown(_ partition: TopicPartition) -> Bool { entries[partition]?.isKnown == true }

  /// Applies the group's answer. Returns the partitions to ``restart(_:)``: their offset no longer exists or belongs
  /// to another log.
  mutating func learn(_ answer: GroupAnswer.Offsets) -> [TopicPartition] {
    return entries.compactMap { partition, entry in
      let offset = answer.committed[partition]
      guard offset != nil || answer.absent.contains(partition) else { return nil }
      let told = entry.told ?? offset ?? -1
      entries[partition]?.told = told
      if let offset, isShared || offset <= max(told, entry.handedOut, entry.done) {
        entries[partition]?.isKnown = true
        if isShared { entries[partition]?.committed = max(entry.committed, offset) }
        return nil
      }
      entries[partition]?.start = answer.starts[partition]
      return entry.isKnown ? partition : nil
    }
  }

  /// The offset of each partition up to which all records are done.
  var ends: [TopicPartition: Int64] {
    entries.compactMapValues { $0.done >= 0 ? $0.done : $0.position.expected }
  }

  /// Notes that records up to the end of `range` are not needed again. Ignores ranges of ended assignments.
  mutating func done(_ range: KafkaBatch.Range) {
    guard let entry = entries[range.partition], entry.epoch == range.epoch else { return }
    entries[range.partition]?.done = max(entry.done, range.next)
    entries[range.partition]?.passMarks()
  }

  var hasUncommitted: Bool { entries.values.contains { $0.done > $0.committed || !$0.isKnown && $0.start != nil } }

  /// The offsets to commit. The first commit of each partition is the offset where it begins, because only a committed
  /// offset can be missed later.
  var uncommitted: [KafkaBatch.Range] {
    entries.compactMap { partition, entry in
      let next = entry.isKnown ? entry.done : entry.start ?? -1
      return next > entry.committed ? KafkaBatch.Range(partition: partition, next: next, epoch: entry.epoch) : nil
    }
  }

  /// Forgets the positions of these partitions. Returns those to read from the beginning: all that are not being
  /// revoked.
  mutating func restart(_ partitions: [TopicPartition]) -> [TopicPartition] {
    let staying = partitions.filter { entries[$0]?.isRevoked == false }
    remove(partitions)
    assign(staying, GroupAnswer.Offsets(absent: Set(staying)))
    return staying
  }

  /// Returns nil if the record must be dropped: its partition is being revoked or has gone, and its next owner reads
  /// it again.
  mutating func receive(
    _ partition: TopicPartition, _ offset: Int64, logStart: @autoclosure () -> Int64
  ) -> ReadPosition.Reception? {
    guard entries[partition]?.isRevoked == false else { return nil }
    return entries[partition]?.position.receive(offset, logStart: logStart())
  }

  /// Notes that the partition ends at `offset`, behind all records that came. Nobody waits for what lies between: marks of
  /// transactions.
  mutating func ended(_ partition: TopicPartition, at offset: Int64, logStart: @autoclosure () -> Int64) {
    guard let entry = entries[partition], !entry.isRevoked else { return }
    guard let begin = entries[partition]?.position.end(at: offset, logStart: logStart()) else { return }
    let first = entry.marks.map { $0.upperBound == begin ? $0.lowerBound : begin } ?? begin
    entries[partition]?.marks = first..<offset
    entries[partition]?.passMarks()
  }

  /// Notes that the consumer's task now has `records`, and returns the ranges to commit for them.
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

  /// Accepts no more records of these partitions. Records handed out before may still be committed until
  /// ``remove(_:)``.
  mutating func revoke(_ partitions: [TopicPartition]) {
    for partition in partitions { entries[partition]?.isRevoked = true }
  }

  /// The partitions among `partitions` with records that are handed out but not committed.
  func busy(_ partitions: [TopicPartition]) -> [TopicPartition] {
    partitions.filter { entries[$0].map { $0.handedOut > $0.committed } ?? false }
  }

  mutating func remove(_ partitions: [TopicPartition]) {
    for partition in partitions { entries[partition] = nil }
  }
}
