import ReelhaulKafka
import ReelhaulSystem
import TestKit
import Testing

@Suite struct ConsumerTests {
  private static let topic = [TopicSpec(name: "t", partitions: 4)]

  @Test("records are read with their keys, values, headers and times")
  func readsWhatWasWritten() async throws {
    try await withDevelopmentBroker(topics: Self.topic) { configuration in
      let producer = try KafkaProducer(configuration)
      try await producer.sendAll([
        KafkaMessage(
          topic: "t", key: bytes("k"), value: bytes("first"),
          headers: [KafkaHeader("ce_id", "1"), KafkaHeader("empty", [])]),
        KafkaMessage(topic: "t", key: bytes("k"), value: nil),
        KafkaMessage(topic: "t", key: bytes("k"), value: []),
      ])
      let consumer = try KafkaConsumer(configuration, group: "g", topics: ["t"])
      let records = try await read(3, from: consumer)
      #expect(records.map(\.offset) == [0, 1, 2])
      #expect(records.map { text($0.value) } == ["first", nil, ""])
      #expect(records[0].headers == [KafkaHeader("ce_id", "1"), KafkaHeader("empty", [])])
      #expect(records[0].timestamp != nil)
      await consumer.close()
      await producer.close()
    }
  }

  @Test("a new member continues after the last commit")
  func goesOnAfterTheLastCommit() async throws {
    try await withDevelopmentBroker(topics: Self.topic) { configuration in
      let producer = try KafkaProducer(configuration)
      let messages = (0..<10).map { KafkaMessage(topic: "t", key: nil, value: bytes("\($0)"), partition: 0) }
      try await producer.sendAll(messages)
      let options = KafkaConsumer.Options(records: 4)
      let first = try KafkaConsumer(configuration, group: "g", topics: ["t"], options: options)
      let done = try #require(try await first.next())
      #expect((1...4).contains(done.records.count))
      first.commit(done.ranges)
      let next = Int64(done.records.count)
      let dropped = try #require(try await first.next())
      #expect(dropped.records.first?.offset == next)
      await first.close()
      #expect(try await first.next()?.records.count == nil)
      first.commit(dropped.ranges)

      let second = try KafkaConsumer(configuration, group: "g", topics: ["t"], options: options)
      #expect(try await read(Int(10 - next), from: second).map(\.offset) == Array(next..<10))
      await second.close()
      await producer.close()
    }
  }

  @Test("partitions that are given instead of assigned are read at once, from the group's offsets, and change hands")
  func givenPartitionsChangeHands() async throws {
    try await withDevelopmentBroker(topics: Self.topic) { configuration in
      let producer = try KafkaProducer(configuration)
      func send(_ texts: [String]) async throws {
        for partition in 0..<4 as Range<Int32> {
          try await producer.sendAll(
            texts.map { KafkaMessage(topic: "t", key: nil, value: bytes($0), partition: partition) })
        }
      }
      func partitions(_ range: Range<Int32>) -> [TopicPartition] { range.map { TopicPartition("t", $0) } }
      let first = try KafkaConsumer(configuration, group: "g", topics: ["t"], isMember: false)
      let second = try KafkaConsumer(configuration, group: "g", topics: ["t"], isMember: false)
      let group = try GroupObserver(configuration, group: "g", topic: "t")
      #expect(try await !group.hasEveryPartition())
      first.take(partitions(0..<4))
      try await eventually("every partition is read") { try await group.hasEveryPartition() }
      try await send(["a", "b"])
      #expect(try await read(8, from: first).count == 8)
      try await eventually("all are committed") { try await group.position().unread == 0 }
      first.take(partitions(0..<1))
      second.take(partitions(1..<4))
      try await eventually("they have changed hands") { first.assignment.count == 1 && second.assignment.count == 3 }
      try await send(["c"])
      #expect(try await read(1, from: first).map(\.partition) == [0])
      let others = try await read(3, from: second)
      #expect(others.map(\.partition).sorted() == [1, 2, 3] && others.allSatisfy { text($0.value) == "c" })
      // Nobody takes care of partition 0 for a while; its records wait.
      first.take([])
      try await eventually("it is given back") { first.assignment == [] }
      try await send(["d"])
      #expect(try await read(3, from: second).map(\.partition).sorted() == [1, 2, 3])
      second.take(partitions(0..<4))
      #expect(try await read(1, from: second).map(\.partition) == [0])
      await first.close()
      await second.close()
      try await eventually("all are committed") { try await group.position().unread == 0 }
      await producer.close()
    }
  }

  @Test("records of a partition that two consumers read come to both once, also to the one that is behind")
  func bothReadTheSame() async throws {
    try await withDevelopmentBroker(topics: Self.topic) { configuration in
      let producer = try KafkaProducer(configuration)
      let ahead = try KafkaConsumer(configuration, group: "g", topics: ["t"], isMember: false)
      let behind = try KafkaConsumer(
        configuration, group: "g", topics: ["t"], options: .init(records: 1), isMember: false)
      let group = try GroupObserver(configuration, group: "g", topic: "t")
      for consumer in [ahead, behind] { consumer.take([TopicPartition("t", 0)]) }
      try await eventually("both read") { ahead.assignment.count == 1 && behind.assignment.count == 1 }
      try await producer.sendAll(
        (0..<9).map { KafkaMessage(topic: "t", key: nil, value: bytes("\($0)"), partition: 0) })
      #expect(try await read(9, from: ahead).map(\.offset) == Array(0..<9))
      try await eventually("all are committed") { try await group.position().unread == 0 }
      for offset in 0..<9 as Range<Int64> {
        #expect(try await read(1, from: behind).map(\.offset) == [offset])
        // It asks the group before it commits, and hears of the larger offset.
        try await Task.sleep(for: .milliseconds(20))
      }
      #expect(try await group.position() == .init(committed: 9, unread: 0))
      await ahead.close()
      await behind.close()
      try await eventually("nothing is taken back") { try await group.position() == .init(committed: 9, unread: 0) }
      await producer.close()
    }
  }

  @Test("an earlier commit that comes later moves no offset back")
  func aLateCommitMovesNoOffsetBack() async throws {
    try await withDevelopmentBroker(topics: Self.topic) { configuration in
      let producer = try KafkaProducer(configuration)
      let messages = (0..<8).map { KafkaMessage(topic: "t", key: nil, value: bytes("\($0)"), partition: 0) }
      try await producer.sendAll(messages)
      let first = try KafkaConsumer(
        configuration, group: "g", topics: ["t"], options: KafkaConsumer.Options(records: 1))
      var batches: [KafkaBatch] = []
      while batches.count < 8, let batch = try await first.next() { batches.append(batch) }
      for batch in batches.reversed() { first.commit(batch.ranges) }
      await first.close()

      let second = try KafkaConsumer(configuration, group: "g", topics: ["t"])
      try await producer.sendAll([KafkaMessage(topic: "t", key: nil, value: bytes("last"), partition: 0)])
      #expect(try await read(1, from: second).map(\.offset) == [8])
      await second.close()
      await producer.close()
    }
  }

  @Test("the size of a batch is limited, including headers")
  func aBatchIsBoundedByItsBytesWithHeaders() async throws {
    try await withDevelopmentBroker(topics: Self.topic) { configuration in
      let producer = try KafkaProducer(configuration, window: KafkaProducer.Window(bytes: 64 << 10))
      let header = KafkaHeader("long", [UInt8](repeating: 1, count: 16 << 10))
      let messages = (0..<20).map { number in
        KafkaMessage(topic: "t", key: nil, value: bytes("\(number)"), headers: [header], partition: 0)
      }
      try await producer.sendAll(messages)
      let consumer = try KafkaConsumer(
        configuration, group: "g", topics: ["t"], options: KafkaConsumer.Options(bytes: 32 << 10))
      var seen = 0
      while seen < 20, let batch = try await consumer.next() {
        #expect(batch.records.count <= 2)
        seen += batch.records.count
        consumer.commit(batch.ranges)
      }
      await consumer.close()
      await producer.close()
    }
  }

  /// The environment sets a property for all clients, and librdkafka requires that a consumer's fetches are not
  /// smaller.
  @Test("a larger message.max.bytes is accepted by producers and consumers")
  func theLargestMessageIsAProducersProperty() async throws {
    let configuration = try KafkaConfiguration(
      bootstrap: "127.0.0.1:1", properties: ["message.max.bytes": "8388608"])
    try await KafkaProducer(configuration).close(within: .zero)
    try await KafkaConsumer(configuration, group: "g", topics: ["t"]).close(within: .zero)
  }

  @Test("a canceled wait loses no records")
  func aCancelledWaitLosesNothing() async throws {
    try await withDevelopmentBroker(topics: Self.topic) { configuration in
      let consumer = try KafkaConsumer(configuration, group: "g", topics: ["t"])
      let wait = Task { try await consumer.next() }
      wait.cancel()
      await #expect(throws: CancellationError.self) { try await wait.value }
      let producer = try KafkaProducer(configuration)
      try await producer.send(topic: "t", key: nil, value: bytes("x"))
      #expect(try await read(1, from: consumer).count == 1)
      await consumer.close()
      await producer.close()
    }
  }

  /// The development broker keeps 5 MB of a partition, so a late reader must be told that records are missing.
  @Test("records that the broker dropped are reported as a gap")
  func reportsRecordsThatTheBrokerDropped() async throws {
    try await withDevelopmentBroker(topics: [TopicSpec(name: "t", partitions: 1)]) { configuration in
      let producer = try KafkaProducer(configuration)
      try await producer.send(topic: "t", key: nil, value: bytes("first"))
      let early = try KafkaConsumer(configuration, group: "g", topics: ["t"])
      #expect(try await read(1, from: early).count == 1)
      await early.close()

      var random = SystemRandomNumberGenerator()
      let noise = (0..<100_000).map { _ in UInt8.random(in: 0...255, using: &random) }
      try await producer.sendAll((0..<100).map { _ in KafkaMessage(topic: "t", key: nil, value: noise) })
      let gaps = Lock<[(expected: Int64, found: Int64)]>([])
      var observed = configuration
      observed.observer = { notice in
        if case .gap(_, let expected, let found) = notice { gaps.withLock { $0.append((expected, found)) } }
      }
      let observer = try GroupObserver(configuration, group: "g", topic: "t")
      let position = try await observer.position()
      let late = try KafkaConsumer(observed, group: "g", topics: ["t"])
      try await eventually("the gap is told before a record is taken") { gaps.withLock { $0.count } == 1 }
      let first = try #require(try await late.next()?.records.first)
      #expect(first.offset > 1)
      #expect(position == .init(committed: 1, unread: 101 - first.offset, lost: first.offset - 1))
      #expect(gaps.withLock { $0.map(\.expected) } == [1])
      #expect(gaps.withLock { $0.map(\.found) } == [first.offset])
      await late.close()
      await producer.close()
    }
  }

  /// librdkafka 2.0 aborts if such a member is freed.
  @Test("members that leave while they join do not crash the process", .timeLimit(.minutes(10)))
  func membersThatLeaveWhileTheyJoinHarmNobody() async throws {
    try await withDevelopmentBroker(topics: [TopicSpec(name: "t", partitions: 4)]) { configuration in
      for round in 0..<12 {
        let members = try (0..<3).map { _ in try KafkaConsumer(configuration, group: "g", topics: ["t"]) }
        try await Task.sleep(for: .milliseconds(50 * round))
        await withTaskGroup(of: Void.self) { group in
          for member in members { group.addTask { await member.close(within: .seconds(1)) } }
        }
      }
    }
  }

  @Test("a consumer closes in time if no broker answers", .timeLimit(.minutes(10))) func closesWithoutABroker()
    async throws
  {
    let consumer = try KafkaConsumer(KafkaConfiguration(bootstrap: "127.0.0.1:1"), group: "g", topics: ["t"])
    await consumer.close(within: .milliseconds(300))
    #expect(try await consumer.next()?.records.count == nil)
  }

  @Test("an observer outside the group sees how many records are unread")
  func anObserverSeesUnreadRecords() async throws {
    try await withDevelopmentBroker(topics: [TopicSpec(name: "observed", partitions: 3)]) {
      try await seesWhatIsUnread($0, topic: "observed")
    }
  }
}
