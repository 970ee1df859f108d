import LocalFleet
import ReelhaulKafka
import ReelhaulSystem
import TestKit
import Testing

@Suite(.serialized, .timeLimit(.minutes(10))) struct TransactionTests {
  private static let limit = Duration.seconds(120)

  private static func producer(_ configuration: KafkaConfiguration, id: String = "relay") throws
    -> TransactionalProducer
  {
    try TransactionalProducer(configuration, id: id, timeout: limit)
  }

  private static func message(_ value: String, topic: String = "t") -> KafkaMessage {
    KafkaMessage(topic: topic, key: bytes("task"), value: bytes(value))
  }

  /// The values of a topic, up to the given last one.
  private static func values(
    of topic: String = "t", until last: String, _ configuration: KafkaConfiguration
  ) async throws -> [String] {
    let reader = try await KafkaReader.open(configuration, topics: [topic], from: .beginning)
    var values: [String] = []
    while values.last != last, let records = try await reader.next() { values += records.compactMap { text($0.value) } }
    await reader.close()
    return values
  }

  @Test("rounds arrive completely and in order")
  func roundsArriveInOrder() async throws {
    try await withDevelopmentBroker(topics: [TopicSpec(name: "t", partitions: 3)]) { configuration in
      let producer = try Self.producer(configuration)
      try await producer.fence(within: Self.limit)
      for round in 0..<3 {
        try await producer.publish((0..<2000).map { Self.message("\(round * 2000 + $0)") }, within: Self.limit)
      }
      try await producer.publish([], within: Self.limit)
      #expect(try await Self.values(until: "5999", configuration) == (0..<6000).map { "\($0)" })
      await producer.close()
      await #expect(throws: KafkaError.self) { try await producer.publish([], within: Self.limit) }
    }
  }

  @Test("a round that cannot be written is aborted, and the next one works")
  func aRoundThatCannotBeWrittenIsAborted() async throws {
    try await withDevelopmentBroker(topics: [TopicSpec(name: "t", partitions: 1)]) { configuration in
      let producer = try Self.producer(configuration)
      try await producer.fence(within: Self.limit)
      let large = KafkaMessage(topic: "t", key: nil, value: [UInt8](repeating: 0, count: 3 << 20))
      let error = await #expect(throws: KafkaError.self) { try await producer.publish([large], within: Self.limit) }
      #expect(error?.code == .messageTooLarge)
      #expect(error?.isFatal == false)
      try await producer.publish([Self.message("fits")], within: Self.limit)
      #expect(try await Self.values(until: "fits", configuration) == ["fits"])
      await producer.close()
    }
  }

  @Test(
    "a round that is too long for the cluster's topic is refused as one, and works after a fence once it is short",
    .enabled(if: TestKafka.isAvailable))
  func aRoundThatTheClusterFindsTooLong() async throws {
    let configuration = try KafkaConfiguration(bootstrap: await TestKafka.shared().bootstrap)
    let admin = try KafkaAdmin(configuration)
    _ = try await admin.ensureTopics([TopicSpec(name: "short", partitions: 1, settings: ["max.message.bytes": "10000"])]
    )
    await admin.close()
    let producer = try TransactionalProducer(configuration, id: "short-relay", timeout: .seconds(20))
    try await producer.fence(within: Self.limit)
    let large = KafkaMessage(topic: "short", key: nil, value: (0..<50_000).map { _ in .random(in: 0...255) })
    let error = await #expect(throws: KafkaError.self) { try await producer.publish([large], within: Self.limit) }
    #expect(error?.code == .messageTooLarge && error?.isFatal == false, "\(String(describing: error))")
    try await producer.fence(within: Self.limit)
    try await producer.publish([Self.message("fits", topic: "short")], within: Self.limit)
    #expect(try await Self.values(of: "short", until: "fits", configuration) == ["fits"])
    await producer.close()
  }

  @Test(
    "properties that do not go together with transactions are refused at once",
    arguments: [("max.in.flight", "10"), ("retries", "0"), ("queuing.strategy", "lifo")])
  func propertiesThatDoNotFit(_ name: String, _ value: String) throws {
    let configuration = try KafkaConfiguration(bootstrap: "127.0.0.1:1", properties: [name: value])
    #expect(throws: KafkaError.self) { try Self.producer(configuration) }
  }

  @Test("nothing can be published before the fence")
  func nothingIsTakenBeforeTheFence() async throws {
    try await withDevelopmentBroker(topics: [TopicSpec(name: "t", partitions: 1)]) { configuration in
      let producer = try Self.producer(configuration)
      let error = await #expect(throws: KafkaError.self) {
        try await producer.publish([Self.message("early")], within: Self.limit)
      }
      #expect(error?.isFatal == true)
      await producer.close()
    }
  }

  @Test("a fence fails in time if the cluster does not answer")
  func aClusterThatDoesNotAnswerIsWaitedForInVain() async throws {
    let producer = try Self.producer(KafkaConfiguration(bootstrap: "127.0.0.1:1"))
    let error = await #expect(throws: KafkaError.self) { try await producer.fence(within: .milliseconds(200)) }
    #expect(error?.isRetryable == true)
    await producer.close()
  }

  /// The producer's time ends while its commit is under way. The next fence decides whether the round is there.
  @Test(
    "a round whose commit got no answer is there completely or not at all after the next fence",
    .enabled(if: TestKafka.isAvailable)) func aRoundWithoutAnAnswerIsThereOrNot() async throws
  {
    try await withSlowNode { slow, direct, proxy in
      let producer = try Self.producer(slow)
      try await producer.fence(within: Self.limit)
      try await producer.publish([Self.message("first")], within: Self.limit)
      proxy.setSilent(true)
      let error = await #expect(throws: KafkaError.self) {
        try await producer.publish([Self.message("lost")], within: .milliseconds(500))
      }
      #expect(error?.isFatal == true)
      proxy.setSilent(false)
      try await producer.fence(within: Self.limit)
      try await producer.publish([Self.message("last")], within: Self.limit)
      let values = try await Self.values(until: "last", direct)
      #expect(values == ["first", "last"] || values == ["first", "lost", "last"])
      await producer.close()
    }
  }

  /// One leader was cut off or frozen, and another took its place. In a compacted topic the last record counts.
  @Test("a round of a former producer is refused after another one has fenced it", .enabled(if: TestKafka.isAvailable))
  func aFormerProducerIsRefused() async throws {
    try await withSlowNode { slow, direct, proxy in
      let old = try Self.producer(slow)
      try await old.fence(within: Self.limit)
      try await old.publish([Self.message("queued")], within: Self.limit)
      proxy.setSilent(true)
      let late = Task { try await old.publish([Self.message("running")], within: Self.limit) }

      let new = try Self.producer(direct)
      try await new.fence(within: Self.limit)
      try await new.publish([Self.message("succeeded")], within: Self.limit)
      proxy.setSilent(false)
      let error = await #expect(throws: KafkaError.self) { try await late.value }
      #expect(error?.isFatal == true)
      #expect(error?.code == .fenced)

      // The former producer may lead again after a new fence.
      try await old.fence(within: Self.limit)
      await #expect(throws: KafkaError.self) { try await new.publish([Self.message("late")], within: Self.limit) }
      try await old.publish([Self.message("last")], within: Self.limit)
      #expect(try await Self.values(until: "last", direct) == ["queued", "succeeded", "last"])
      await old.close()
      await new.close()
    }
  }

  /// A node with the topic `t`, reached directly or through a proxy.
  private func withSlowNode(
    _ body: (_ slow: KafkaConfiguration, _ direct: KafkaConfiguration, CuttingProxy) async throws -> Void
  ) async throws {
    let kafka = try await ProxiedKafka.start()
    let direct = try KafkaConfiguration(bootstrap: kafka.node.bootstrap)
    let admin = try KafkaAdmin(direct)
    _ = try await admin.ensureTopics([TopicSpec(name: "t", partitions: 1, settings: ["cleanup.policy": "compact"])])
    await admin.close()
    try await body(try KafkaConfiguration(bootstrap: kafka.proxied), direct, kafka.proxy)
    await kafka.stop()
  }
}
