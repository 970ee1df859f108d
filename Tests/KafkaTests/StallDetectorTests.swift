import Testing

@testable import ReelhaulKafka

@Suite struct StallDetectorTests {
  private let a = TopicPartition("t", 0)
  private let b = TopicPartition("t", 1)

  @Test("a partition that has records and delivers none is stalled")
  func aPartitionThatDeliversNothingIsStalled() {
    var detector = StallDetector()
    for _ in 0..<2 { #expect(detector.idleLook(at: [a: 5, b: 7], ends: [a: 6, b: 7]) == [:]) }
    #expect(detector.idleLook(at: [a: 5, b: 7], ends: [a: 9, b: 7]) == [a: 5])
    let isTold = [detector.receive(a, 5), detector.receive(a, 6)]
    #expect(isTold == [true, false], "once")
  }

  /// The markers of transactions have offsets but are not records.
  @Test("offsets without records are fetched again once and are not reported as a stall")
  func offsetsWithoutRecordsAreTriedOnce() {
    var detector = StallDetector()
    let stalled = (0..<10).map { _ in detector.idleLook(at: [a: 5], ends: [a: 6]) }.filter { !$0.isEmpty }
    #expect(stalled == [[a: 5]])
    let isTold = detector.receive(a, 6)
    #expect(!isTold, "it is new")
    let later = (0..<3).map { _ in detector.idleLook(at: [a: 7], ends: [a: 8]) }
    #expect(later.last == [a: 7])
  }

  /// In a backlog the records of other partitions may come first.
  @Test("a partition whose records wait behind others is not stalled")
  func aPartitionBehindABacklogIsNotStalled() {
    var detector = StallDetector()
    for _ in 0..<10 { #expect(detector.look(at: [a: 5], ends: [a: 6]) == [:]) }
    for _ in 0..<2 { #expect(detector.idleLook(at: [a: 5], ends: [a: 6]) == [:]) }
    #expect(detector.look(at: [a: 5], ends: [a: 6]) == [:])
    #expect(detector.idleLook(at: [a: 5], ends: [a: 6]) == [a: 5])
  }

  /// Then the queue is empty for moments, too.
  @Test("while there is more than can be taken, no partition is stalled")
  func aFullBufferIsNoStall() {
    var detector = StallDetector()
    for _ in 0..<10 {
      #expect(detector.idleLook(at: [a: 5], ends: [a: 6]) == [:])
      detector.full()
    }
    for _ in 0..<2 { #expect(detector.idleLook(at: [a: 5], ends: [a: 6]) == [:]) }
    #expect(detector.idleLook(at: [a: 5], ends: [a: 6]) == [a: 5])
  }

  @Test("a partition whose position moves is not stalled")
  func aPartitionThatMovesIsNotStalled() {
    var detector = StallDetector()
    for position in 0..<10 as Range<Int64> {
      #expect(detector.idleLook(at: [a: position], ends: [a: 100]) == [:])
    }
  }

  @Test("a look without positions or ends starts the count again")
  func aLookThatSaysNothingBeginsAnew() {
    var detector = StallDetector()
    for _ in 0..<2 { #expect(detector.idleLook(at: [a: 5], ends: [a: 6]) == [:]) }
    #expect(detector.idleLook(at: [a: 5], ends: [:]) == [:])
    #expect(detector.idleLook(at: [:], ends: [a: 6]) == [:])
    for _ in 0..<2 { #expect(detector.idleLook(at: [a: 5], ends: [a: 6]) == [:]) }
  }
}

extension StallDetector {
  /// A look after all available records have been taken.
  fileprivate mutating func idleLook(
    at positions: [TopicPartition: Int64], ends: [TopicPartition: Int64]
  ) -> [TopicPartition: Int64] {
    idle()
    return look(at: positions, ends: ends)
  }
}
