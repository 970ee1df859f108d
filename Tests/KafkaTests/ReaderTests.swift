import CReelhaulKafka
import ReelhaulKafka
import ReelhaulSystem
import TestKit
import Testing

@Suite struct ReaderTests {
  private static func message(_ value: String, topic: String = "t", partition: Int32) -> KafkaMessage {
    KafkaMessage(topic: topic, key: nil, value: bytes(value), partition: partition)
  }

  private static func values(_ count: Int, from reader: KafkaReader) async throws -> Set<String> {
    var values: Set<String> = []
    while values.count < count, let records = try await reader.next() {
      for record in records { values.insert(text(record.value) ?? "") }
    }
    return values
  }

  @Test("a reader starts at the beginning or at the end of every partition, as asked")
  func readsEveryPartitionFromWhereItWasAsked() async throws {
    try await withDevelopmentBroker(topics: [TopicSpec(name: "t", partitions: 3)]) { configuration in
      let producer = try KafkaProducer(configuration)
      try await producer.sendAll((0..<3).map { Self.message("old \($0)", partition: $0) })
      let all = try await KafkaReader.open(configuration, topics: ["t"], from: .beginning)
      let new = try await KafkaReader.open(configuration, topics: ["t"], from: .end)
      try await producer.sendAll((0..<3).map { Self.message("new \($0)", partition: $0) })
      #expect(try await Self.values(3, from: new) == ["new 0", "new 1", "new 2"])
      #expect(
        try await Self.values(6, from: all) == ["old 0", "old 1", "old 2", "new 0", "new 1", "new 2"])
      await all.close()
      await new.close()
      #expect(try await new.next()?.count == nil)
      await producer.close()
    }
  }

  @Test("a reader tells where partitions end, also of those that have no records") func tellsEnds() async throws {
    try await withDevelopmentBroker(topics: [TopicSpec(name: "t", partitions: 2)]) { configuration in
      let producer = try KafkaProducer(configuration)
      try await producer.sendAll((0..<3).map { Self.message("\($0)", partition: 0) })
      let reader = try await KafkaReader.open(configuration, topics: ["t"], from: .beginning, tellsEnds: true)
      var ends: [TopicPartition: Int64] = [:]
      while ends.count < 2, let reading = try await reader.read() { ends.merge(reading.ends) { $1 } }
      #expect(ends == [TopicPartition("t", 0): 3, TopicPartition("t", 1): 0])
      await reader.close()
      await producer.close()
    }
  }

  @Test("the size of a reader's batch is limited")
  func aBatchIsBoundedByItsBytes() async throws {
    try await withDevelopmentBroker(topics: [TopicSpec(name: "t", partitions: 1)]) { configuration in
      let producer = try KafkaProducer(configuration)
      let value = String(repeating: "x", count: 16 << 10)
      try await producer.sendAll((0..<20).map { _ in Self.message(value, partition: 0) })
      let reader = try await KafkaReader.open(configuration, topics: ["t"], from: .beginning, bytes: 32 << 10)
      var seen = 0
      while seen < 20, let records = try await reader.next() {
        #expect(records.count <= 2)
        seen += records.count
      }
      await reader.close()
      await producer.close()
    }
  }

  @Test("a cluster that hangs is told once, within seconds")
  func tellsOfSilence() async throws {
    let node = try ScriptedNode()
    let silences = Lock(0)
    let configuration = try KafkaConfiguration(bootstrap: "127.0.0.1:\(node.port)") { notice in
      if case .unanswered = notice { silences.withLock { $0 += 1 } }
    }
    let reader = try await KafkaReader.open(configuration, topics: ["missing"], from: .end)
    node.hang()
    try await eventually("the silence is told") { silences.withLock { $0 } == 1 }
    try await Task.sleep(for: .seconds(3))
    #expect(silences.withLock { $0 } == 1)
    await reader.close()
    node.close()
  }

  @Test("a topic that is created later is read from its beginning")
  func noticesATopicThatComesLater() async throws {
    try await withDevelopmentBroker(topics: []) { configuration in
      let reader = try await KafkaReader.open(configuration, topics: ["later"], from: .end)
      let producer = try KafkaProducer(configuration)
      try await producer.sendAll((0..<4).map { Self.message("\($0)", topic: "later", partition: $0) })
      #expect(try await Self.values(4, from: reader) == ["0", "1", "2", "3"])
      await reader.close()
      await producer.close()
    }
  }

  @Test("missing topics are reported, and reported again when they exist")
  func tellsOfTopicsThatAreMissing() async throws {
    let seen = Lock<[[String]]>([])
    try await withDevelopmentBroker(topics: [TopicSpec(name: "t", partitions: 1)]) { base in
      var configuration = base
      configuration.observer = { if case .missing(let topics) = $0 { seen.withLock { $0.append(topics) } } }
      let reader = try await KafkaReader.open(configuration, topics: ["t"], expecting: ["b", "a"], from: .end)
      #expect(seen.withLock { $0 } == [["a", "b"]])
      let admin = try KafkaAdmin(base)
      _ = try await admin.ensureTopics(["a", "b"].map { TopicSpec(name: $0, partitions: 4) })
      await admin.close()
      try await eventually("they are found") { seen.withLock { $0.last } == [] }
      await reader.close()
    }
  }

  @Test("asks for its topics by name, and for all of the cluster only while one is missing")
  func asksByName() async throws {
    let names = ["a", "b", "t"]
    let cluster = MockCluster(topics: names)
    defer { cluster.close() }
    let missing = Lock<[[String]]>([])
    let requests = Lock<[String]>([])
    let configuration = try KafkaConfiguration(
      bootstrap: cluster.bootstrap, properties: ["debug": "metadata"],
      observer: { notice in
        switch notice {
        case .missing(let topics): missing.withLock { $0.append(topics) }
        case .log(_, _, let text) where text.hasSuffix("topics: application requested"):
          requests.withLock { $0.append("all") }
        case .log(_, _, let text) where text.hasSuffix("1 topic(s): application requested"):
          requests.withLock { $0.append("one") }
        default: break
        }
      })
    let reader = try await KafkaReader.open(configuration, topics: ["t"], expecting: names, from: .end)
    try await eventually("looks") { requests.withLock { $0.count > 6 } }
    #expect(requests.withLock { $0.dropFirst().allSatisfy { $0 == "one" } })

    cluster.answers(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, about: "b")
    try await eventually("b is missing") { missing.withLock { $0.last } == ["b"] }
    // What it asked before is told later.
    try await eventually("asks for all") { requests.withLock { $0.last == "all" } }
    requests.withLock { $0 = [] }
    try await eventually("looks again") { requests.withLock { $0.count > 2 } }
    #expect(requests.withLock { $0.dropFirst().allSatisfy { $0 == "all" } })
    cluster.answers(RD_KAFKA_RESP_ERR_NO_ERROR, about: "b")
    try await eventually("all are there again") { missing.withLock { $0.last } == [] }
    await reader.close()
  }

  @Test("a topic of which the cluster can say nothing for a moment is read on where it was")
  func goesOnAfterAMoment() async throws {
    let cluster = MockCluster(topics: ["t"])
    defer { cluster.close() }
    let seen = Lock<[[String]]>([])
    let configuration = try KafkaConfiguration(
      bootstrap: cluster.bootstrap,
      observer: { if case .missing(let topics) = $0 { seen.withLock { $0.append(topics) } } })
    let producer = try KafkaProducer(configuration)
    try await producer.sendAll((0..<3).map { Self.message("old \($0)", partition: 0) })
    let reader = try await KafkaReader.open(configuration, topics: ["t"], from: .last(1))
    #expect(try await Self.values(1, from: reader) == ["old 2"])
    cluster.answers(RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, about: "t")
    // Longer than from one look to the next.
    try await Task.sleep(for: .seconds(2))
    #expect(reader.partitionCount(of: "t") == 1)
    cluster.answers(RD_KAFKA_RESP_ERR_NO_ERROR, about: "t")
    try await producer.sendAll([Self.message("new", partition: 0)])
    #expect(try await Self.values(1, from: reader) == ["new"])
    #expect(seen.withLock { $0 }.isEmpty)
    await reader.close()
    await producer.close()
  }

  @Test("opening a reader without a broker is a retryable error")
  func failsToOpenWithoutABroker() async throws {
    let configuration = try KafkaConfiguration(bootstrap: "127.0.0.1:1")
    let error = await #expect(throws: KafkaError.self) {
      _ = try await KafkaReader.open(configuration, topics: ["t"], from: .end, timeout: .milliseconds(300))
    }
    #expect(error?.isRetryable == true)
  }
}
