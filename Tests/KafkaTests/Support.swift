import ReelhaulKafka
import TestKit
import Testing

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

func text(_ bytes: [UInt8]?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

/// Runs `body` with a new development broker.
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

/// `topic` must be new.
func seesWhatIsUnread(_ configuration: KafkaConfiguration, topic: String) async throws {
  // A cluster that has just started may need some time to find a group's coordinator.
  let observer = try GroupObserver(configuration, group: topic, topic: topic, timeout: .seconds(60))
  #expect(try await observer.position() == .init(committed: 0, unread: 0))
  let producer = try KafkaProducer(configuration)
  try await producer.sendAll((0..<7).map { KafkaMessage(topic: topic, key: bytes("\($0)"), value: nil) })
  #expect(try await observer.position() == .init(committed: 0, unread: 7))
  let consumer = try KafkaConsumer(configuration, group: topic, topics: [topic])
  _ = try await read(7, from: consumer)
  try await eventually("all is committed") { try await observer.position() == .init(committed: 7, unread: 0) }
  try await producer.send(topic: topic, key: nil, value: nil)
  #expect(try await observer.position() == .init(committed: 7, unread: 1))
  await consumer.close()
  await producer.close()
}

/// Reads and commits batches until there are `count` records.
func read(_ count: Int, from consumer: KafkaConsumer) async throws -> [KafkaRecord] {
  var records: [KafkaRecord] = []
  while records.count < count, let batch = try await consumer.next() {
    records += batch.records
    consumer.commit(batch.ranges)
  }
  return records
}
