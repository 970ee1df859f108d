import Testing

@testable import ReelhaulKafka

@Suite struct AssignmentLedgerTests {
  private let partition = TopicPartition("t", 0)

  private func record(_ offset: Int64) -> KafkaRecord {
    KafkaRecord(topic: "t", partition: 0, offset: offset, key: nil, value: nil)
  }

  @Test("reading starts at the group's offset, and missing records are a gap")
  func expectsTheGroupsOffset() {
    var ledger = AssignmentLedger()
    ledger.assign([partition], GroupAnswer.Offsets(committed: [partition: 10]))
    #expect(ledger.receive(partition, 12, logStart: 12) == .gap(expected: 10))
    #expect(ledger.receive(partition, 13, logStart: 12) == .accept)
  }

  @Test("where the group's offset is gone from the log, its beginning is read and committed, even without a record")
  func theBeginningReplacesAnOffsetThatIsGone() {
    var ledger = AssignmentLedger()
    let other = TopicPartition("t", 1)
    let answer = GroupAnswer.Offsets(committed: [partition: 10, other: 10], starts: [partition: 12, other: 10])
    #expect(answer.gone == [partition: 10])
    ledger.assign([partition, other], answer)
    #expect(ledger.positions == [partition: 12, other: 10])
    #expect(ledger.uncommitted.map(\.next) == [12])
    #expect(ledger.learn(answer) == [], "it is the same log")
    ledger.committed(ledger.uncommitted[0])
    #expect(!ledger.hasUncommitted)
    #expect(ledger.receive(partition, 12, logStart: 12) == .accept)
  }

  @Test("a log without an offset of the group has begun if its first records are gone")
  func aLogHasBegun() {
    let other = TopicPartition("t", 1)
    let answer = GroupAnswer.Offsets(absent: [partition, other], starts: [partition: 5, other: 0])
    #expect(answer.begun == [partition] && answer.gone.isEmpty)
  }

  @Test("the beginning of a partition is committed before anything else if the group has no offset")
  func theGroupKnowsWhatItToldOrWasTold() {
    var ledger = AssignmentLedger()
    let other = TopicPartition("t", 1)
    ledger.assign([partition, other], GroupAnswer.Offsets(committed: [other: 10]))
    #expect(!ledger.isKnown(partition) && ledger.isKnown(other))
    let range = ledger.handOut([record(3)])[0]
    ledger.done(range)
    #expect(ledger.hasUncommitted && ledger.uncommitted == [], "where it begins comes first")
    #expect(ledger.learn(.init(committed: [other: 10], absent: [partition], starts: [partition: 2, other: 1])) == [])
    #expect(ledger.uncommitted.map(\.next) == [2])
    ledger.committed(ledger.uncommitted[0])
    #expect(ledger.isKnown(partition))
    #expect(ledger.uncommitted == [range])
    ledger.committed(range)
    #expect(!ledger.hasUncommitted && ledger.uncommitted == [])
  }

  @Test("marks of transactions are done when all records before them are")
  func marksFollowTheRecords() {
    var ledger = AssignmentLedger()
    ledger.assign([partition], GroupAnswer.Offsets(committed: [partition: 10]))
    ledger.ended(partition, at: 11, logStart: 0)
    #expect(ledger.uncommitted.map(\.next) == [11], "nothing came since the group's offset")
    ledger.committed(ledger.uncommitted[0])
    #expect(ledger.receive(partition, 11, logStart: 0) == .accept)
    let first = ledger.handOut([record(11)])[0]
    ledger.ended(partition, at: 13, logStart: 0)
    #expect(!ledger.hasUncommitted)
    #expect(ledger.receive(partition, 13, logStart: 0) == .accept)
    ledger.done(first)
    #expect(ledger.uncommitted.map(\.next) == [13])
    #expect(ledger.learn(.init(committed: [partition: 13])) == [], "it is the same log")
    ledger.ended(partition, at: 15, logStart: 0)
    #expect(ledger.uncommitted.map(\.next) == [13], "the record before is not done")
    ledger.done(ledger.handOut([record(13)])[0])
    #expect(ledger.uncommitted.map(\.next) == [15])
  }

  @Test("a partition whose offset the group has lost is read from its beginning")
  func beginsAnewWhereTheGroupHasLostItsOffset() {
    var ledger = AssignmentLedger()
    let other = TopicPartition("t", 1)
    ledger.assign([partition, other], GroupAnswer.Offsets(committed: [partition: 3, other: 10]))
    let ranges = ledger.handOut([record(3)])
    ledger.done(ranges[0])
    ledger.revoke([other])
    #expect(ledger.restart([partition, other]) == [partition], "what goes is not read again")
    ledger.done(ranges[0])
    #expect(!ledger.hasUncommitted && !ledger.isKnown(partition) && !ledger.isKnown(other))
    #expect(ledger.receive(partition, 0, logStart: 0) == .accept)
    #expect(ledger.receive(other, 0, logStart: 0) == nil)
  }

  @Test("where others read the same partition, their larger offset neither restarts it nor is taken back")
  func theOffsetsOfOthersStay() {
    var ledger = AssignmentLedger()
    ledger.isShared = true
    ledger.assign([partition], GroupAnswer.Offsets(committed: [partition: 3]))
    #expect(ledger.receive(partition, 3, logStart: 0) == .accept)
    let range = ledger.handOut([record(3)])[0]
    ledger.done(range)
    #expect(ledger.learn(.init(committed: [partition: 9])) == [])
    #expect(ledger.uncommitted == [] && !ledger.hasUncommitted)
    #expect(ledger.receive(partition, 4, logStart: 0) == .accept)
    ledger.done(ledger.handOut([record(10)])[0])
    #expect(ledger.learn(.init(committed: [partition: 9])) == [])
    #expect(ledger.uncommitted.map(\.next) == [11])
  }

  @Test("records of a partition that is being revoked are dropped")
  func takesNothingOfWhatGoes() {
    var ledger = AssignmentLedger()
    ledger.assign([partition], nil)
    #expect(ledger.receive(partition, 0, logStart: 0) == .accept)
    ledger.revoke([partition])
    #expect(ledger.receive(partition, 1, logStart: 0) == nil)
    #expect(ledger.partitions == [])
    ledger.remove([partition])
    #expect(ledger.receive(partition, 2, logStart: 0) == nil)
  }

  @Test("what is handed out is committed only once it is done")
  func handedOutIsNotDone() {
    var ledger = AssignmentLedger()
    ledger.assign([partition], GroupAnswer.Offsets(committed: [partition: 3]))
    let ranges = ledger.handOut([record(3), record(4)])
    #expect(!ledger.hasUncommitted && ledger.uncommitted == [])
    ledger.done(ranges[0])
    #expect(ledger.uncommitted == ranges)
  }

  @Test("a leaving partition is busy until its records are committed")
  func aLeavingPartitionIsBusyUntilItsRecordsAreCommitted() {
    var ledger = AssignmentLedger()
    ledger.assign([partition], GroupAnswer.Offsets(committed: [partition: 3]))
    let ranges = ledger.handOut([record(3), record(4)])
    #expect(ranges.map(\.next) == [5])
    ledger.revoke([partition])
    #expect(ledger.busy([partition]) == [partition])
    ledger.done(ranges[0])
    #expect(ledger.uncommitted == ranges)
    ledger.committed(ranges[0])
    #expect(ledger.busy([partition]) == [])
  }

  @Test("a batch from an earlier assignment is not committed")
  func aBatchOfAnEarlierAssignmentIsNotCommitted() {
    var ledger = AssignmentLedger()
    ledger.assign([partition], GroupAnswer.Offsets(committed: [partition: 3]))
    let stale = ledger.handOut([record(3), record(4)])
    ledger.done(stale[0])
    ledger.remove([partition])
    #expect(!ledger.hasUncommitted)
    ledger.assign([partition], GroupAnswer.Offsets(committed: [partition: 3]))
    ledger.done(stale[0])
    #expect(!ledger.hasUncommitted)
    let fresh = ledger.handOut([record(3)])
    ledger.done(fresh[0])
    ledger.committed(stale[0])
    #expect(ledger.busy([partition]) == [partition])
    #expect(ledger.uncommitted == fresh)
  }

  @Test("an offset of a deleted topic that lands in the new one is replaced")
  func anOffsetOfAnotherLogIsReplaced() {
    var ledger = AssignmentLedger()
    ledger.assign([partition], .init(committed: [partition: 3]))
    let former = ledger.handOut([record(99)])[0]
    ledger.done(former)
    #expect(ledger.learn(.init(absent: [partition])) == [partition])
    #expect(ledger.restart([partition]) == [partition])
    #expect(ledger.learn(.init(committed: [partition: 100], starts: [partition: 0])) == [], "it is begun anew already")
    #expect(ledger.hasUncommitted)
    #expect(ledger.uncommitted.map(\.next) == [0])
    ledger.committed(ledger.uncommitted[0])
    #expect(ledger.learn(.init(committed: [partition: 0])) == [])
    #expect(ledger.learn(.init(committed: [partition: 100])) == [partition], "once more")
  }

  @Test("an offset beyond all records that were handed out belongs to another log")
  func anOffsetThatIsFurtherThanWhatWasHandedOutIsOfAnotherLog() {
    var ledger = AssignmentLedger()
    ledger.assign([partition], .init(committed: [partition: 3]))
    #expect(ledger.learn(.init(committed: [partition: 3])) == [])
    _ = ledger.handOut([record(8)])
    #expect(ledger.learn(.init(committed: [partition: 9])) == [], "a commit whose answer was lost")
    // The log was created again, and is read from its beginning.
    _ = ledger.handOut([record(0)])
    #expect(ledger.learn(.init(committed: [partition: 9])) == [partition])
  }

  @Test("the first offset that the group tells is trusted")
  func theGroupsFirstOffsetIsTrusted() {
    var ledger = AssignmentLedger()
    ledger.assign([partition], nil)
    #expect(ledger.learn(.init(committed: [partition: 500])) == [])
    #expect(ledger.isKnown(partition))
    #expect(ledger.learn(.init(committed: [partition: 501])) == [partition])
  }

  @Test("a late commit moves no offset back")
  func noOffsetMovesBack() {
    var ledger = AssignmentLedger()
    ledger.assign([partition], GroupAnswer.Offsets(committed: [partition: 3]))
    let first = ledger.handOut([record(3)])[0]
    let second = ledger.handOut([record(4)])[0]
    ledger.done(second)
    ledger.done(first)
    #expect(ledger.uncommitted == [second])
    ledger.committed(second)
    ledger.committed(first)
    #expect(ledger.uncommitted == [])
  }
}
