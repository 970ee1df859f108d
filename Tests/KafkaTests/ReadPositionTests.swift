import Testing

@testable import ReelhaulKafka

@Suite struct ReadPositionTests {
  @Test("skipped records that are still in the log are sought")
  func goesBackForRecordsThatWereSkipped() {
    var position = ReadPosition(10)
    #expect(position.receive(10, logStart: 0) == .accept)
    #expect(position.receive(20, logStart: 0) == .seek(11))
    #expect(position.receive(11, logStart: 0) == .accept, "it was there after all")
    #expect(position.receive(12, logStart: 0) == .accept)
    #expect(position.receive(30, logStart: 0) == .seek(13), "and the next time again")
  }

  @Test("records that are gone from the log are a gap")
  func recordsThatAreGoneFromTheLogAreAGap() {
    var position = ReadPosition(10)
    #expect(position.receive(50, logStart: 50) == .gap(expected: 10))
    #expect(position.receive(51, logStart: 50) == .accept)
  }

  @Test("offsets without a record are sought once and are not a gap")
  func offsetsWithoutARecordAreSoughtOnceAndAreNoGap() {
    var position = ReadPosition(10)
    #expect(position.receive(12, logStart: 0) == .seek(10))
    #expect(position.receive(12, logStart: 0) == .accept, "compacted, or the marker of a transaction")
    #expect(position.receive(15, logStart: 0) == .accept, "such a partition has more of them")
    #expect(position.receive(30, logStart: 16) == .accept)
    #expect(position.receive(32, logStart: 32) == .accept, "only a marker is gone")
    #expect(position.receive(60, logStart: 50) == .gap(expected: 33), "records are gone in spite of that")
  }

  @Test("an end behind the last record is that of marks, unless records may be missing")
  func anEndBehindTheLastRecord() {
    var position = ReadPosition(10)
    #expect(position.receive(10, logStart: 0) == .accept)
    #expect(position.end(at: 11, logStart: 0) == nil, "there is nothing")
    #expect(position.end(at: 12, logStart: 0) == 11)
    #expect(position.receive(12, logStart: 0) == .accept, "the next record needs no search")
    #expect(position.end(at: 20, logStart: 15) == nil, "records are gone")
    #expect(position.receive(20, logStart: 0) == .seek(13))
    #expect(position.end(at: 21, logStart: 0) == nil, "records are sought")
  }

  @Test("no record is accepted twice, unless the log began again")
  func takesNoRecordTwiceUnlessTheLogBeganAnew() {
    var position = ReadPosition(400)
    #expect(position.receive(0, logStart: 0) == .seek(400))
    #expect(position.receive(400, logStart: 0) == .accept)
    #expect(position.receive(0, logStart: 0) == .seek(401))
    #expect(position.receive(0, logStart: 0) == .accept, "sought in vain")
    #expect(position.receive(1, logStart: 0) == .accept)
  }

  @Test("there is no gap before the first record")
  func knowsNoGapBeforeTheFirstRecord() {
    var position = ReadPosition()
    #expect(position.receive(5000, logStart: 5000) == .accept)
    #expect(position.receive(5001, logStart: 5000) == .accept)
  }
}
