import ReelhaulKafka
import Testing

@testable import WorkerCore

@Suite struct KafkaPartsTests {
  @Test("dead letters are on every replica before the offsets of their commands are committed") func letters() {
    #expect(KafkaParts.letters.properties["acks"] == "all")
  }
}
