import Kafka
import Testing

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

func text(_ bytes: [UInt8]?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

/// Runs `body` against a broker of its own.
func withDevelopmentBroker(
  topics: [TopicSpec], _ body: (KafkaConfiguration) async throws -> Void
) async throws {
  let broker = try DevelopmentBroker(topics: topics)
  do {
    try await body(KafkaConfiguration(bootstrap: broker.bootstrap))
  } catch {
    await broker.close()
    throw error
  }
  await broker.close()
}

/// Reads and commits batches until `count` records are there.
func read(_ count: Int, from consumer: KafkaConsumer) async throws -> [KafkaRecord] {
  var records: [KafkaRecord] = []
  while records.count < count, let batch = try await consumer.next() {
    records += batch.records
    try await consumer.commit(batch)
  }
  return records
}
