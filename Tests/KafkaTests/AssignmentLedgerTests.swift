import Testing

@testable import Kafka

@Suite struct AssignmentLedgerTests {
  private let partition = TopicPartition("t", 0)

  private func record(_ offset: Int64) -> KafkaRecord {
    KafkaRecord(topic: "t", partition: 0, offset: offset, key: nil, value: nil)
  }

  @Test func seesGapsFromTheGroupsOffsetOn() {
    var ledger = AssignmentLedger()
    ledger.assign([partition], committed: [partition: 10])
    #expect(ledger.receive(partition, 10) == .accept)
    #expect(ledger.receive(partition, 12) == .seek(11), "looked for once")
    #expect(ledger.receive(partition, 12) == .gap(expected: 11))
    #expect(ledger.receive(partition, 13) == .accept)
    #expect(ledger.receive(partition, 20) == .seek(14))
    #expect(ledger.receive(partition, 14) == .accept, "it was there after all")
  }

  @Test func takesNoRecordTwiceUnlessTheLogBeganAnew() {
    var ledger = AssignmentLedger()
    ledger.assign([partition], committed: [partition: 400])
    #expect(ledger.receive(partition, 0) == .seek(400))
    #expect(ledger.receive(partition, 400) == .accept)
    #expect(ledger.receive(partition, 0) == .seek(401))
    #expect(ledger.receive(partition, 0) == .accept, "sought in vain")
    #expect(ledger.receive(partition, 1) == .accept)
  }

  @Test func knowsNoGapWithoutACommit() {
    var ledger = AssignmentLedger()
    ledger.assign([partition])
    #expect(ledger.receive(partition, 5000) == .accept)
  }

  @Test func takesNothingOfWhatGoes() {
    var ledger = AssignmentLedger()
    ledger.assign([partition])
    #expect(ledger.receive(partition, 0) == .accept)
    ledger.revoke([partition])
    #expect(ledger.receive(partition, 1) == .drop)
    #expect(ledger.partitions == [])
    ledger.remove([partition])
    #expect(ledger.receive(partition, 2) == .drop)
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
