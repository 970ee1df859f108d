import Testing

@testable import Kafka

@Suite struct AssignmentLedgerTests {
  private let partition = TopicPartition("t", 0)

  private func record(_ offset: Int64) -> KafkaRecord {
    KafkaRecord(topic: "t", partition: 0, offset: offset, key: nil, value: nil)
  }

  @Test func expectsTheGroupsOffset() {
    var ledger = AssignmentLedger()
    ledger.assign([partition], committed: [partition: 10])
    #expect(ledger.receive(partition, 12, logStart: 12) == .gap(expected: 10))
    #expect(ledger.receive(partition, 13, logStart: 12) == .accept)
  }

  @Test func theGroupKnowsWhatItToldOrWasTold() {
    var ledger = AssignmentLedger()
    let other = TopicPartition("t", 1)
    ledger.assign([partition, other], committed: [other: 10])
    #expect(!ledger.isKnown(partition) && ledger.isKnown(other))
    let ranges = ledger.handOut([record(3)])
    ledger.committed(ranges[0])
    #expect(ledger.isKnown(partition))
  }

  @Test func beginsAnewWhereTheGroupHasLostItsOffset() {
    var ledger = AssignmentLedger()
    let other = TopicPartition("t", 1)
    ledger.assign([partition, other], committed: [partition: 3, other: 10])
    let ranges = ledger.handOut([record(3)])
    ledger.revoke([other])
    #expect(ledger.restart([partition, other]) == [partition], "what goes is not read again")
    #expect(!ledger.owns(ranges[0]) && !ledger.isKnown(partition) && !ledger.isKnown(other))
    #expect(ledger.receive(partition, 0, logStart: 0) == .accept)
    #expect(ledger.receive(other, 0, logStart: 0) == nil)
  }

  @Test func takesNothingOfWhatGoes() {
    var ledger = AssignmentLedger()
    ledger.assign([partition])
    #expect(ledger.receive(partition, 0, logStart: 0) == .accept)
    ledger.revoke([partition])
    #expect(ledger.receive(partition, 1, logStart: 0) == nil)
    #expect(ledger.partitions == [])
    ledger.remove([partition])
    #expect(ledger.receive(partition, 2, logStart: 0) == nil)
  }

  @Test func aLeavingPartitionIsBusyUntilItsRecordsAreCommitted() {
    var ledger = AssignmentLedger()
    ledger.assign([partition])
    let ranges = ledger.handOut([record(3), record(4)])
    #expect(ranges.map(\.next) == [5])
    ledger.revoke([partition])
    #expect(ledger.isBusy([partition]))
    #expect(ledger.owns(ranges[0]))
    ledger.committed(ranges[0])
    #expect(!ledger.isBusy([partition]))
  }

  @Test func aBatchOfAnEarlierAssignmentIsNotCommitted() {
    var ledger = AssignmentLedger()
    ledger.assign([partition])
    let stale = ledger.handOut([record(3)])
    ledger.remove([partition])
    #expect(!ledger.owns(stale[0]))
    ledger.assign([partition])
    #expect(!ledger.owns(stale[0]))
    ledger.committed(stale[0])
    let fresh = ledger.handOut([record(3)])
    #expect(ledger.isBusy([partition]))
    #expect(ledger.owns(fresh[0]))
  }
}
