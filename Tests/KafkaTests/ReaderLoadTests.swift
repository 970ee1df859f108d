import LocalFleet
import ReelhaulKafka
import ReelhaulSystem
import TestKit
import Testing

/// Readers under more load than their buffers can hold.
@Suite(.timeLimit(.minutes(10))) struct ReaderLoadTests {
  private static let partitions = 48

  /// Bytes that compression cannot make smaller.
  private static func noise(_ count: Int) -> [UInt8] {
    var state = UInt64.random(in: 1 ... .max)
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      for index in 0..<count {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        buffer[index] = UInt8(truncatingIfNeeded: state)
      }
      initialized = count
    }
  }

  /// Sends bursts to all partitions while a reader from the end takes a few records at a time. It must get all of
  /// them, in order.
  private static func readsAll(_ base: KafkaConfiguration, topic: String) async throws {
    let gaps = Lock(0)
    var configuration = base
    configuration.observer = { notice in
      if case .gap = notice { gaps.withLock { $0 += 1 } }
    }
    let producer = try KafkaProducer(base)
    try await producer.sendAll((0..<1000).map { KafkaMessage(topic: topic, key: bytes("\($0)"), value: bytes("old")) })
    let reader = try await KafkaReader.open(configuration, topics: [topic], from: .end, records: 100)
    let (bursts, size) = (10, 5000)
    let value = Self.noise(200)
    let sending = Task {
      for burst in 0..<bursts {
        try await producer.sendAll(
          (0..<size).map { KafkaMessage(topic: topic, key: bytes("new \(burst * size + $0)"), value: value) })
      }
    }
    var count = 0
    var next: [Int32: Int64] = [:]
    while count < bursts * size, let records = try await reader.next() {
      #expect(records.count <= 100)
      for record in records {
        #expect(text(record.key)?.hasPrefix("new") == true)
        #expect(record.offset == next[record.partition] ?? record.offset)
        next[record.partition] = record.offset + 1
      }
      count += records.count
    }
    try await sending.value
    #expect(count == bursts * size)
    #expect(gaps.withLock { $0 } == 0)
    await reader.close()
    await producer.close()
  }

  @Test("a reader gets every record of bursts from the development broker")
  func readsEveryRecordOfBurstsFromTheDevelopmentBroker() async throws {
    try await withDevelopmentBroker(topics: [TopicSpec(name: "t", partitions: Self.partitions)]) { configuration in
      try await Self.readsAll(configuration, topic: "t")
    }
  }

  @Test("a reader gets every record of bursts from Apache Kafka", .enabled(if: TestKafka.isAvailable))
  func readsEveryRecordOfBurstsFromApacheKafka() async throws {
    let configuration = try KafkaConfiguration(bootstrap: await TestKafka.shared().bootstrap)
    let admin = try KafkaAdmin(configuration)
    _ = try await admin.ensureTopics([TopicSpec(name: "bursts", partitions: Self.partitions)])
    await admin.close()
    try await Self.readsAll(configuration, topic: "bursts")
  }

  /// The development broker drops the oldest records beyond 5 MB. A reader from the end that reads nothing while 16 MB
  /// come continues with the earliest remaining record.
  @Test("a reader that fell behind continues with the earliest record and reports the gap")
  func aReaderThatFellBehindGoesOnWithTheEarliestRecordThereIs() async throws {
    try await withDevelopmentBroker(topics: [TopicSpec(name: "t", partitions: 1)]) { base in
      let missed = Lock<[Range<Int64>]>([])
      var configuration = base
      configuration.observer = { notice in
        if case .gap(_, let expected, let found) = notice { missed.withLock { $0.append(expected..<found) } }
      }
      let reader = try await KafkaReader.open(configuration, topics: ["t"], from: .end, records: 10)
      let producer = try KafkaProducer(base)
      let total: Int64 = 16_000
      for _ in 0..<16 {
        try await producer.sendAll(
          (0..<total / 16).map { _ in KafkaMessage(topic: "t", key: nil, value: Self.noise(1000), partition: 0) })
      }
      let late = try await KafkaReader.open(base, topics: ["t"], from: .beginning)
      let earliest = try #require(try await late.next()?.first?.offset)
      #expect(earliest > 0 && earliest < total, "some are dropped, some are there")

      var offsets: [Int64] = []
      while offsets.last != total - 1, let records = try await reader.next() { offsets += records.map(\.offset) }
      #expect(offsets == offsets.sorted())
      #expect(offsets.suffix(Int(total - earliest)) == Array(earliest..<total)[...])
      let gone = missed.withLock { $0 }
      #expect(!gone.isEmpty)
      #expect(Set(0..<total).subtracting(offsets) == gone.reduce(into: Set()) { $0.formUnion($1) })
      await late.close()
      await reader.close()
      await producer.close()
    }
  }
}
