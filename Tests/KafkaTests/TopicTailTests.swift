import ReelhaulKafka
import ReelhaulSystem
import TestKit
import Testing

@Suite struct TopicTailTests {
  @Test("parts of a topic are read by their offsets, again and again, and long values are cut")
  func reads() async throws {
    try await withDevelopmentBroker(topics: [TopicSpec(name: "t", partitions: 2)]) { configuration in
      let producer = try KafkaProducer(configuration)
      for number in 0..<10 {
        try await producer.sendAll(
          ([0, 1] as [Int32]).map { partition in
            KafkaMessage(topic: "t", key: nil, value: bytes("\(number) of \(partition)"), partition: partition)
          })
      }
      let tail = try TopicTail(configuration, topic: "t")
      #expect(try await tail.bounds() == [0: 0..<10, 1: 0..<10])
      for _ in 0..<2 {
        let records = try await tail.records([0: 7..<9, 1: 9..<10], bytes: 3)
        let texts = records.map {
          "\($0.record.partition) \($0.record.offset) \(text($0.record.value) ?? "") \($0.size)"
        }
        #expect(texts.sorted() == ["0 7 7 o 6", "0 8 8 o 6", "1 9 9 o 6"])
      }
      #expect(try await tail.records([0: 3..<3], bytes: 3).isEmpty)
      await tail.close()
      let none = try TopicTail(configuration, topic: "nothing")
      let error = await #expect(throws: KafkaError.self) { try await none.bounds() }
      #expect(error?.message == "there is no topic nothing, or this user may not see it")
      #expect(error?.isRetryable == false, "it is told at once")
      await none.close()
      await producer.close()
    }
  }
}
