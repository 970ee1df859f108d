import ReelhaulKafka
import ReelhaulSystem
import TestKit
import Testing

@Suite struct ProducerTests {
  /// A node alone, as in tests, answers all alike.
  @Test("only samples do without the acknowledgement of every replica") func guarantees() {
    let properties = [KafkaProducer.Guarantee.everyReplica, .everyReplicaMaybeTwice, .leader].map(\.properties)
    #expect(properties.map { $0["acks"] } == ["all", "all", "1"])
    #expect(properties.map { $0["enable.idempotence"] } == ["true", "false", "false"])
  }

  @Test("a delivered message reports its partition and offset")
  func deliversEachMessageAndSaysWhere() async throws {
    try await withDevelopmentBroker(topics: [TopicSpec(name: "t", partitions: 3)]) { configuration in
      let producer = try KafkaProducer(configuration)
      let first = try await producer.send(topic: "t", key: bytes("k"), value: bytes("1"))
      let second = try await producer.send(topic: "t", key: bytes("k"), value: bytes("2"))
      #expect(second.partition == first.partition && second.offset == first.offset + 1)
      await producer.close()
    }
  }

  @Test("each message of a batch has its own result")
  func answersForEveryMessageOfABatchByItself() async throws {
    try await withDevelopmentBroker(topics: [TopicSpec(name: "t", partitions: 3)]) { configuration in
      let producer = try KafkaProducer(configuration)
      let deliveries = await producer.deliver([
        KafkaMessage(topic: "t", key: nil, value: bytes("fits"), partition: 0),
        KafkaMessage(topic: "t", key: nil, value: [UInt8](repeating: 0, count: 3 << 20), partition: 0),
        KafkaMessage(topic: "t", key: nil, value: bytes("fits too"), partition: 0),
      ])
      #expect(deliveries.failures == [1])
      #expect(try deliveries[2].get().offset == 1)
      #expect(throws: KafkaError.self) { try deliveries[1].get() }
      guard case .failure(let error) = deliveries[1] else { return }
      #expect(error.code == .messageTooLarge)
      #expect(!error.isRetryable)
      await producer.close()
    }
  }

  @Test("senders wait if the window is full, and batches keep their order")
  func waitsInsteadOfOverfillingItsWindow() async throws {
    try await withDevelopmentBroker(topics: [TopicSpec(name: "t", partitions: 1)]) { configuration in
      let producer = try KafkaProducer(configuration, window: KafkaProducer.Window(messages: 10))
      let messages = (0..<1000).map { KafkaMessage(topic: "t", key: nil, value: bytes("\($0)"), partition: 0) }
      let offsets = await withTaskGroup(of: Deliveries.self) { group in
        for _ in 0..<4 { group.addTask { await producer.deliver(messages) } }
        return await group.reduce(into: Set<Int64>()) { offsets, deliveries in
          #expect(deliveries.failures == [])
          var last: Int64 = -1
          for index in 0..<deliveries.count {
            guard case .success(let delivery) = deliveries[index] else { continue }
            #expect(delivery.offset > last, "a batch keeps its order")
            last = delivery.offset
            offsets.insert(last)
          }
        }
      }
      #expect(offsets == Set(0..<4000))
      await producer.close()
    }
  }

  @Test("closing fails the messages that cannot be delivered")
  func closingAnswersWhatCannotBeDelivered() async throws {
    let producer = try KafkaProducer(KafkaConfiguration(bootstrap: "127.0.0.1:1"))
    async let deliveries = producer.deliver([KafkaMessage(topic: "t", key: nil, value: bytes("x"))])
    producer.offer(KafkaMessage(topic: "t", key: nil, value: bytes("y")))
    await producer.close(within: .milliseconds(200))
    #expect(await deliveries.failures == [0])
    #expect(await producer.deliver([KafkaMessage(topic: "t", key: nil, value: nil)]).failures == [0])
  }

  @Test("what waits for the window fails as what is in it, however much is sent while no broker is there")
  func waitingMessagesTimeOut() async throws {
    let producer = try KafkaProducer(
      KafkaConfiguration(bootstrap: "127.0.0.1:1", properties: ["message.timeout.ms": "1000"]),
      window: KafkaProducer.Window(messages: 5))
    // With five each second they would take 20 s, those that came last.
    let start = BootInstant.now
    let sent = (0..<100).map { producer.enqueue([KafkaMessage(topic: "t", key: nil, value: bytes("\($0)"))]) }
    let rounds = Lock<Set<Int64>>([])
    for pending in sent {
      let deliveries = await pending.value()
      #expect(deliveries.failures == [0])
      rounds.withLock { _ = $0.insert((BootInstant.now - start).milliseconds / 500) }
    }
    #expect(rounds.withLock { $0.count } <= 8)
    await producer.close(within: .zero)
  }

  @Test("offers beyond the window are dropped")
  func offersAreDroppedRatherThanKept() async throws {
    let producer = try KafkaProducer(
      KafkaConfiguration(bootstrap: "127.0.0.1:1"), guarantee: .leader, window: KafkaProducer.Window(messages: 5))
    for _ in 0..<1000 { producer.offer(KafkaMessage(topic: "t", key: nil, value: bytes("x"))) }
    await producer.close(within: .zero)
    #expect(producer.dropped >= 990)
  }
}
