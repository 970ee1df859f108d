import Testing

@testable import Kafka

@Suite struct StallDetectorTests {
  private let a = TopicPartition("t", 0)
  private let b = TopicPartition("t", 1)

  @Test func whatStandsStillBeforeRecordsIsStalled() {
    var detector = StallDetector()
    for _ in 0..<2 { #expect(detector.look(at: [a: 5, b: 7], ends: [a: 6, b: 7]) == [:]) }
    #expect(detector.look(at: [a: 5, b: 7], ends: [a: 9, b: 7]) == [a: 5])
    #expect(detector.look(at: [a: 5, b: 7], ends: [a: 9, b: 7]) == [:], "it is given time again")
  }

  @Test func whatMovesIsNot() {
    var detector = StallDetector()
    for position in 0..<10 as Range<Int64> {
      #expect(detector.look(at: [a: position], ends: [a: 100]) == [:])
    }
  }

  @Test func aLookThatSaysNothingBeginsAnew() {
    var detector = StallDetector()
    for _ in 0..<2 { #expect(detector.look(at: [a: 5], ends: [a: 6]) == [:]) }
    #expect(detector.look(at: [a: 5], ends: [:]) == [:])
    #expect(detector.look(at: [:], ends: [a: 6]) == [:])
    for _ in 0..<2 { #expect(detector.look(at: [a: 5], ends: [a: 6]) == [:]) }
  }
}
