import LocalFleet
import ReelhaulKafka
import ReelhaulSystem
import TestKit
import Testing

/// Behaviour that only a real cluster shows: the admin protocol, several members of a group, a broker that restarts.
@Suite(.enabled(if: TestKafka.isAvailable), .timeLimit(.minutes(10)))
struct ApacheKafkaTests {
  /// The shared node, with topic names that no other test uses.
  private func setUp(_ name: String, partitions: Int = 4) async throws -> KafkaConfiguration {
    let configuration = try KafkaConfiguration(bootstrap: await TestKafka.shared().bootstrap)
    let admin = try KafkaAdmin(configuration)
    #expect(try await admin.ensureTopics([TopicSpec(name: name, partitions: partitions)]).differences == [])
    await admin.close()
    return configuration
  }

  @Test("topics that do not exist have no differences")
  func missingTopicsHaveNoDifferences() async throws {
    let admin = try KafkaAdmin(KafkaConfiguration(bootstrap: await TestKafka.shared().bootstrap))
    #expect(try await admin.differences(TopicPlan(prefix: "never-made.").topics) == [])
    #expect(try await admin.ensureTopics([]).differences == [])
    await admin.close()
  }

  @Test("of several processes that create the topics at once, each topic is reported by one")
  func aTopicIsCreatedByOne() async throws {
    let configuration = try KafkaConfiguration(bootstrap: await TestKafka.shared().bootstrap)
    let plan = (0..<8).map { TopicSpec(name: "race-\($0)", partitions: 1) }
    let created = try await withThrowingTaskGroup(of: Set<String>.self) { group in
      for _ in 0..<3 {
        group.addTask {
          let admin = try KafkaAdmin(configuration)
          let created = try await admin.ensureTopics(plan).created
          await admin.close()
          return created
        }
      }
      return try await group.reduce(into: []) { $0 += Array($1) }
    }
    #expect(created.sorted() == plan.map(\.name))
  }

  @Test("the planned topics are created once, and differences are reported")
  func createsThePlanAndReportsDifferences() async throws {
    let configuration = try KafkaConfiguration(bootstrap: await TestKafka.shared().bootstrap)
    let admin = try KafkaAdmin(configuration)
    let plan = TopicPlan(prefix: "plan.", partitions: 8)
    #expect(try await admin.ensureTopics(plan.topics).differences == [])
    #expect(try await admin.ensureTopics(plan.topics).differences == [], "made once, and as planned")
    #expect(try await admin.metadata().topics["plan.commands"] == 8)
    let other = [
      TopicSpec(name: plan.tasks, partitions: 5, settings: ["cleanup.policy": "delete", "retention.ms": "604800000"])
    ]
    #expect(
      try await admin.ensureTopics(other).differences.map(\.description) == [
        "plan.tasks: partitions is 12, planned 5", "plan.tasks: cleanup.policy is compact, planned delete",
      ])
    await #expect(throws: KafkaError.self) {
      try await admin.ensureTopics([TopicSpec(name: "bad", partitions: 1, settings: ["no.such.setting": "1"])])
    }
    await admin.close()
  }

  @Test("no partition of a backlog waits until others have been read")
  func aBacklogIsReadFromAllPartitions() async throws {
    let (partitions, count) = (24, 72_000)
    let configuration = try await setUp("backlog", partitions: partitions)
    let producer = try KafkaProducer(configuration)
    var random = SplitMix64(seed: 7)
    for first in stride(from: 0, to: count, by: 6000) {
      try await producer.sendAll(
        (first..<first + 6000).map { number in
          // Not to be compressed: a partition has more than an answer.
          let value = (0..<128).map { _ in UInt8.random(in: 0...255, using: &random) }
          return KafkaMessage(topic: "backlog", key: bytes("key \(number)"), value: value)
        })
    }
    let consumer = try KafkaConsumer(configuration, group: "backlog", topics: ["backlog"])
    let first = try await read(count / 4, from: consumer)
    #expect(Set(first.map(\.partition)).count == partitions)
    await consumer.close()
    await producer.close()
  }

  @Test("records with the same key keep their order and headers")
  func keepsTheOrderOfAKey() async throws {
    let configuration = try await setUp("order")
    let producer = try KafkaProducer(configuration)
    let messages = (0..<5000).map {
      KafkaMessage(
        topic: "order", key: bytes("key \($0 % 7)"), value: bytes("\($0)"), headers: [KafkaHeader("n", "\($0)")])
    }
    try await producer.sendAll(messages)
    let consumer = try KafkaConsumer(configuration, group: "order", topics: ["order"])
    let records = try await read(5000, from: consumer)
    #expect(records.count == 5000)
    for key in 0..<7 {
      let values = records.filter { text($0.key) == "key \(key)" }.compactMap { text($0.value).flatMap { Int($0) } }
      #expect(values == (0..<5000).filter { $0 % 7 == key })
    }
    #expect(records.allSatisfy { text($0.headers.first?.value) == text($0.value) })
    await consumer.close()
    await producer.close()
  }

  @Test("when a second member joins, no record is lost, and repeated records are reported")
  func aSecondMemberTakesItsShareAndNothingIsLostOrDoubledUnsaid() async throws {
    let configuration = try await setUp("share")
    let seen = Lock<[TopicPartition: [String: Int]]>([:])
    let repeated = Lock<Set<TopicPartition>>([])
    let total = 4000
    let producer = try KafkaProducer(configuration)
    let options = KafkaConsumer.Options(records: 100)
    var observed = configuration
    observed.observer = { notice in
      if case .repeated(let partitions) = notice { repeated.withLock { $0.formUnion(partitions) } }
    }
    let first = try KafkaConsumer(observed, group: "share", topics: ["share"], options: options)
    let work: @Sendable (KafkaConsumer) async throws -> Void = { consumer in
      while let batch = try await consumer.next() {
        for record in batch.records {
          let partition = TopicPartition("share", record.partition)
          seen.withLock { $0[partition, default: [:]][text(record.value) ?? "", default: 0] += 1 }
        }
        consumer.commit(batch.ranges)
      }
    }
    let firstWork = Task { try await work(first) }
    func send(_ range: Range<Int>) async throws {
      try await producer.sendAll(range.map { KafkaMessage(topic: "share", key: bytes("\($0)"), value: bytes("\($0)")) })
    }
    try await send(0..<total / 2)
    try await eventually("the first has all partitions") { first.assignment.count == 4 }
    let second = try KafkaConsumer(observed, group: "share", topics: ["share"], options: options)
    let secondWork = Task { try await work(second) }
    try await send(total / 2..<total)
    try await eventually("both have a half") { first.assignment.count == 2 && second.assignment.count == 2 }
    #expect(Set(first.assignment).isDisjoint(with: second.assignment))
    try await eventually("every record is seen") { seen.withLock { $0.values.reduce(0) { $0 + $1.count } } == total }

    await first.close()
    try await eventually("the second has all") { second.assignment.count == 4 }
    await second.close()
    try await firstWork.value
    try await secondWork.value
    let twice = seen.withLock { seen in Set(seen.filter { $0.value.values.contains { $0 > 1 } }.keys) }
    #expect(twice.isSubset(of: repeated.withLock { $0 }), "nothing comes twice unsaid")

    let third = try KafkaConsumer(configuration, group: "share", topics: ["share"])
    try await producer.send(topic: "share", key: nil, value: bytes("last"))
    #expect(try await read(1, from: third).map { text($0.value) } == ["last"], "everything else is committed")
    await third.close()
    await producer.close()
  }

  /// The beginning is committed before anything else.
  @Test("the first commit to a topic that was created again skips no record")
  func aFirstCommitPassesByNothingEither() async throws {
    let configuration = try await setUp("first", partitions: 1)
    let producer = try KafkaProducer(configuration)
    let consumer = try KafkaConsumer(configuration, group: "first", topics: ["first"])
    try await producer.sendAll((0..<5).map { _ in KafkaMessage(topic: "first", key: nil, value: bytes("old")) })
    let batch = try #require(try await consumer.next())

    try await makeAnew("first", holding: batch, of: consumer, records: 8, producer)
  }

  /// Deletes the topic of one partition, while `batch` is not committed yet, and creates it again with new records.
  /// All of the new records must come.
  private func makeAnew(
    _ topic: String, holding batch: KafkaBatch, of consumer: KafkaConsumer, records: Int, _ producer: KafkaProducer
  ) async throws {
    try await TestKafka.delete([topic], at: await TestKafka.shared().bootstrap)
    _ = try await setUp(topic, partitions: 1)
    let wanted = (0..<records).map { "new \($0)" }
    try await producer.sendAll(wanted.map { KafkaMessage(topic: topic, key: nil, value: bytes($0)) })
    consumer.commit(batch.ranges)
    var found: Set<String> = []
    while !found.isSuperset(of: wanted), let batch = try await consumer.next() {
      found.formUnion(batch.records.compactMap { text($0.value) })
      consumer.commit(batch.ranges)
    }
    await consumer.close()
    await producer.close()
  }

  @Test("an observer outside the group sees how many records are unread")
  func anObserverSeesUnreadRecords() async throws {
    let configuration = try await setUp("observed")
    try await seesWhatIsUnread(configuration, topic: "observed")
  }

  @Test("marks of a producer's transactions are not unread records")
  func marksOfTransactionsAreNotUnread() async throws {
    let configuration = try await setUp("marks")
    let producer = try TransactionalProducer(configuration, id: "marks", timeout: .seconds(60))
    try await producer.fence(within: .seconds(60))
    func publish(_ values: Range<Int>) async throws {
      let messages = values.map { KafkaMessage(topic: "marks", key: bytes("\($0)"), value: bytes("\($0)")) }
      try await producer.publish(messages, within: .seconds(60))
    }
    try await publish(0..<20)
    let consumer = try KafkaConsumer(configuration, group: "marks", topics: ["marks"])
    let observer = try GroupObserver(configuration, group: "marks", topic: "marks")
    var seen: Set<String> = []
    for values in [0..<20, 20..<40] {
      if values.lowerBound > 0 { try await publish(values) }
      while seen.count < values.upperBound, let batch = try await consumer.next() {
        seen.formUnion(batch.records.compactMap { text($0.value) })
        consumer.commit(batch.ranges)
      }
      try await eventually("nothing is unread") { try await observer.position().unread == 0 }
      try await eventually("nor late") { consumer.lag == 0 }
    }
    await consumer.close()
    await producer.close()
  }

  @Test("records that a leaving member has not committed go to another member, and the member can return")
  func aMemberLeavesWithWhatItHasNotCommittedAndComesBack() async throws {
    let configuration = try await setUp("leave")
    let producer = try KafkaProducer(configuration)
    let first = try KafkaConsumer(configuration, group: "leave", topics: ["leave"], isMember: false)
    let second = try KafkaConsumer(configuration, group: "leave", topics: ["leave"])
    try await eventually("who has not joined has no share") { second.assignment.count == 4 }
    first.join()
    try await eventually("both have a half") { first.assignment.count == 2 && second.assignment.count == 2 }

    let share = try #require(first.assignment.first)
    try await producer.sendAll([
      KafkaMessage(topic: "leave", key: nil, value: bytes("left"), partition: share.partition)
    ])
    let batch = try #require(try await first.next())
    first.leave()
    try await eventually("the second has all") { first.assignment.isEmpty && second.assignment.count == 4 }
    #expect(try await read(1, from: second).map { text($0.value) } == ["left"])
    first.commit(batch.ranges)

    first.join()
    try await eventually("both have a half again") { first.assignment.count == 2 && second.assignment.count == 2 }
    for _ in 0..<20 {
      first.leave()
      first.join()
    }
    try await eventually("its last word counts") { first.assignment.count == 2 && second.assignment.count == 2 }
    try await producer.sendAll(
      (0..<4).map { KafkaMessage(topic: "leave", key: nil, value: bytes("x"), partition: $0) })
    async let ofFirst = read(2, from: first)
    async let ofSecond = read(2, from: second)
    #expect(try await ofFirst.count + ofSecond.count == 4)
    await first.close()
    await second.close()
    await producer.close()
  }

  @Test("a commit skips no record of a topic that was deleted and created again")
  func aCommitPassesByNothingOfATopicMadeAnew() async throws {
    let configuration = try await setUp("anew", partitions: 1)
    let producer = try KafkaProducer(configuration)
    let consumer = try KafkaConsumer(configuration, group: "anew", topics: ["anew"])
    for text in ["committed", "handed out"] { try await producer.send(topic: "anew", key: nil, value: bytes(text)) }
    let first = try #require(try await consumer.next())
    consumer.commit(first.ranges)
    let observer = try GroupObserver(configuration, group: "anew", topic: "anew")
    try await eventually("it is committed") { try await observer.position().committed == first.records.count }
    try await producer.send(topic: "anew", key: nil, value: bytes("not committed"))
    let batch = try #require(try await consumer.next())

    try await makeAnew("anew", holding: batch, of: consumer, records: 10, producer)
  }

  @Test("paused partitions are not read until they are resumed")
  func pausedPartitionsAreNotReadUntilResumed() async throws {
    let configuration = try await setUp("pause")
    let producer = try KafkaProducer(configuration)
    let consumer = try KafkaConsumer(configuration, group: "pause", topics: ["pause"])
    try await producer.send(topic: "pause", key: nil, value: bytes("before"))
    #expect(try await read(1, from: consumer).count == 1)
    consumer.pause()
    let wait = Task { try await consumer.next() }
    // Another reader gets the record. So it is there, and the paused consumer could have read it.
    let reader = try await KafkaReader.open(configuration, topics: ["pause"], from: .end)
    try await producer.send(topic: "pause", key: nil, value: bytes("after"))
    #expect(try await reader.next()?.map { text($0.value) } == ["after"])
    wait.cancel()
    await #expect(throws: CancellationError.self) { _ = try await wait.value }
    consumer.resume()
    #expect(try await read(1, from: consumer).map { text($0.value) } == ["after"])
    await reader.close()
    await consumer.close()
    await producer.close()
  }

  @Test("a slow consumer loses no records")
  func aConsumerThatIsSlowLosesNothing() async throws {
    let configuration = try await setUp("slow")
    let producer = try KafkaProducer(configuration)
    try await producer.sendAll(
      (0..<2000).map { KafkaMessage(topic: "slow", key: bytes("\($0)"), value: bytes("\($0)")) })
    let consumer = try KafkaConsumer(
      configuration, group: "slow", topics: ["slow"],
      options: KafkaConsumer.Options(records: 50, patience: .milliseconds(20)))
    var values: [String] = []
    while values.count < 2000, let batch = try await consumer.next() {
      #expect(batch.records.count <= 50)
      values += batch.records.compactMap { text($0.value) }
      // Waits long enough, from time to time, for the buffer to stay full and the partitions to be paused.
      if values.count % 500 < 50 { try await Task.sleep(for: .milliseconds(60)) }
      consumer.commit(batch.ranges)
    }
    #expect(Set(values).count == 2000)
    #expect(values.count == 2000)
    await consumer.close()
    await producer.close()
  }

  @Test("a broker killed during producing loses and doubles no records")
  func aBrokerKilledAmidProducingLosesAndDoublesNothing() async throws {
    let directory = try TemporaryDirectory(prefix: "reelhaul-kafka")
    let node = try await TestKafka.start(in: directory.path)
    let configuration = try KafkaConfiguration(bootstrap: node.bootstrap)
    let admin = try KafkaAdmin(configuration)
    _ = try await admin.ensureTopics([TopicSpec(name: "t", partitions: 2)])
    await admin.close()
    let producer = try KafkaProducer(configuration, window: KafkaProducer.Window(messages: 500))
    let acknowledged = Lock(0)
    let sending = Task {
      for batch in 0..<40 {
        try await producer.sendAll(
          (0..<500).map { KafkaMessage(topic: "t", key: bytes("\($0)"), value: bytes("\(batch * 500 + $0)")) })
        acknowledged.withLock { $0 += 1 }
      }
    }
    try await eventually("some are acknowledged") { acknowledged.withLock { $0 } >= 3 }
    await node.kill()
    try await node.start()
    try await sending.value

    let reader = try await KafkaReader.open(configuration, topics: ["t"], from: .beginning)
    var values: [String] = []
    while values.count < 20_000, let records = try await reader.next() {
      values += records.compactMap { text($0.value) }
    }
    #expect(Set(values).count == 20_000)
    #expect(values.count == 20_000)
    await reader.close()
    await producer.close()
    await node.stop()
    #expect(await node.pid == nil)
  }

  @Test(
    "clients continue with a topic that is deleted and created again, and writing does not create it",
    arguments: [50, 3]) func aTopicThatIsDeletedAndMadeAgainIsWrittenAndRead(count: Int) async throws
  {
    let name = "again-\(count)"
    let configuration = try await setUp(name, partitions: 1)
    let producer = try KafkaProducer(configuration)
    let consumer = try KafkaConsumer(configuration, group: name, topics: [name])
    let reader = try await KafkaReader.open(configuration, topics: [name], from: .end)
    let messages = (0..<count).map { KafkaMessage(topic: name, key: nil, value: bytes("old \($0)")) }
    try await producer.sendAll(messages)
    #expect(try await read(count, from: consumer).count == count)
    var seen = 0
    while seen < count, let records = try await reader.next() { seen += records.count }

    try await TestKafka.delete([name], at: configuration.bootstrap)
    var hasty = configuration
    hasty = try KafkaConfiguration(bootstrap: hasty.bootstrap, properties: ["message.timeout.ms": "2000"])
    let other = try KafkaProducer(hasty)
    await #expect(throws: KafkaError.self) { try await other.send(topic: name, key: nil, value: bytes("lost")) }
    await other.close()
    _ = try await setUp(name, partitions: 1)
    for number in 0..<3 { try await producer.send(topic: name, key: nil, value: bytes("new \(number)")) }
    #expect(try await read(3, from: consumer).map { text($0.value) } == ["new 0", "new 1", "new 2"])
    var values: [String?] = []
    while values.count < 3, let records = try await reader.next() { values += records.map { text($0.value) } }
    #expect(values == ["new 0", "new 1", "new 2"])
    await reader.close()
    await consumer.close()
    await producer.close()
  }

  @Test("a node that is started again keeps its records")
  func startsAgainWhereItWas() async throws {
    let directory = try TemporaryDirectory(prefix: "reelhaul-kafka")
    let first = try await TestKafka.start(in: directory.path)
    let producer = try KafkaProducer(KafkaConfiguration(bootstrap: first.bootstrap))
    let admin = try KafkaAdmin(KafkaConfiguration(bootstrap: first.bootstrap))
    _ = try await admin.ensureTopics([TopicSpec(name: "t", partitions: 1)])
    await admin.close()
    try await producer.send(topic: "t", key: nil, value: bytes("kept"))
    await producer.close()
    await first.kill()

    let second = try await TestKafka.start(in: directory.path)
    let reader = try await KafkaReader.open(
      KafkaConfiguration(bootstrap: second.bootstrap), topics: ["t"], from: .beginning)
    #expect(try await reader.next()?.map { text($0.value) } == ["kept"])
    await reader.close()
    await second.stop()
  }
}
