import ReelhaulKafka
import ReelhaulSystem
import TestKit
import Testing

@Suite struct PartitionerTests {
  /// The hashes are those of the Java client's own tests (`UtilsTest.testMurmur2`).
  @Test("a key goes to the partition that the Java client takes", arguments: [false, true])
  func javaPartitions(isTransactional: Bool) async throws {
    let hashes: [(key: String, hash: Int32)] = [
      ("21", -973_932_308), ("foobar", -790_332_482), ("a-little-bit-long-string", -985_981_536),
      ("a-little-bit-longer-string", -1_486_304_829), ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
    ]
    let messages = hashes.map { KafkaMessage(topic: "t", key: bytes($0.key), value: bytes($0.key)) }
    try await withDevelopmentBroker(topics: [TopicSpec(name: "t", partitions: 48)]) { configuration in
      if isTransactional {
        let producer = try TransactionalProducer(configuration, id: "partitions", timeout: .seconds(60))
        try await producer.fence(within: .seconds(60))
        try await producer.publish(messages, within: .seconds(60))
        await producer.close()
      } else {
        let producer = try KafkaProducer(configuration)
        try await producer.sendAll(messages)
        await producer.close()
      }
      let reader = try await KafkaReader.open(configuration, topics: ["t"], from: .beginning)
      var partitions: [String: Int32] = [:]
      while partitions.count < hashes.count, let records = try await reader.next() {
        for record in records { partitions[text(record.value) ?? ""] = record.partition }
      }
      await reader.close()
      for (key, hash) in hashes {
        #expect(partitions[key] == (hash & .max) % 48, "\(key)")
        #expect(KafkaReader.partition(of: bytes(key), count: 48) == partitions[key])
      }
    }
  }

  @Test("a topic without partitions has none for a key") func noPartitions() {
    #expect(KafkaReader.partition(of: bytes("a"), count: 0) == nil)
  }
}
