import Glibc
import HTTPServer
import LocalFleet
import ReelhaulKafka
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TestKit
import Testing

@testable import ControlAPI

extension EventsTests {
  @Test(
    "a topic that is made anew while it is served is told to everyone as a gap, and what follows it is sent",
    .enabled(if: TestKafka.isAvailable))
  func replaced() async throws {
    let node = try await TestKafka.shared()
    let bootstrap = node.bootstrap
    let kafka = try KafkaConfiguration(bootstrap: bootstrap)
    let topics = TopicPlan(prefix: "sse\(UniqueID.random())-")
    let create: @Sendable () async throws -> Void = {
      let admin = try KafkaAdmin(kafka)
      _ = try await admin.ensureTopics(
        [topics.events, topics.progress].map { TopicSpec(name: $0, partitions: EventBench.partitions) })
      await admin.close()
    }
    try await create()
    try await EventBench.run(kafka, topics) { bench in
      try await bench.serving { port, _ in
        let id = UniqueID.random()
        let client = try EventClient(port)
        client.receive { $0.last?.name == "ready" }
        try await bench.publish(id, 1...40)
        let cursors = client.receive(id, 40).compactMap(\.id)
        try await TestKafka.delete([topics.events], at: bootstrap)
        try await create()
        // Fewer than the former topic had, so that its offsets come again.
        try await bench.publish(id, 101...105)
        #expect(client.receive { $0.contains { $0.name == "gap" } }.contains { $0.name == "gap" })
        try await bench.publish(id, 106...106)
        #expect(client.receive(id, 106).last?.key == "\(id) 106")
        for cursor in [cursors.first, cursors.last] {
          let back = try EventClient(port, after: cursor)
          #expect(back.receive { $0.contains { $0.name == "ready" } }.map(\.name).prefix(2) == ["gap", "ready"])
        }
        let back = try EventClient(port, after: cursors.first)
        back.receive { $0.contains { $0.name == "ready" } }
        try await bench.publish(id, 107...107)
        #expect(back.receive(id, 107).last?.key == "\(id) 107")
      }
    }
  }

  @Test("while the topic does not exist there is trouble, and everything is told once it does")
  func missing() async throws {
    let broker = try DevelopmentBroker(topics: [])
    try await EventBench.run(KafkaConfiguration(bootstrap: broker.bootstrap), TopicPlan()) { bench in
      try await bench.serving { port, _ in
        let id = UniqueID.random()
        let (all, one) = (try EventClient(port), try EventClient(port, "?task=\(id)&from=start"))
        for client in [all, one] { #expect(client.receive { !$0.isEmpty }.map(\.name) == ["trouble"]) }
        // The first record makes the topic.
        try await bench.publish(id, 1...1)
        one.receive(id, 1)
        all.receive { $0.contains { $0.name == "ready" } }
        try await bench.publish(id, 2...2)
        for client in [one, all] { client.receive(id, 2) }
        #expect(one.events.filter { $0.name == "message" }.map(\.key) == (1...2).map { "\(id) \($0)" })
        #expect(all.events.last?.key == "\(id) 2")
      }
    }
    await broker.close()
  }

  @Test("an outage of Kafka is told to clients and to the log, and its end; then everything is told") func outage()
    async throws
  {
    let topics = TopicPlan()
    let cluster = MockCluster(topics: [topics.events, topics.progress], partitions: 3)
    defer { cluster.close() }
    let kafka = try KafkaConfiguration(bootstrap: cluster.bootstrap)
    let directory = try TemporaryDirectory(prefix: "outage")
    let file = try FileDescriptor.open("\(directory.path)/log", O_RDWR | O_CREAT)
    let log = Logger(level: .notice, format: .json, descriptor: file.raw)
    try await EventBench.run(kafka, topics) { bench in
      try await bench.serving(log: log) { port, _ in
        let id = UniqueID.random()
        let client = try EventClient(port)
        client.receive { $0.last?.name == "ready" }
        cluster.goes(down: true)
        #expect(client.receive { $0.contains { $0.name == "trouble" } }.contains { $0.name == "trouble" })
        // Who comes meanwhile hears of it, too.
        let other = try EventClient(port)
        #expect(other.receive { $0.contains { $0.name == "trouble" } }.contains { $0.name == "trouble" })
        cluster.goes(down: false)
        for one in [client, other] {
          #expect(one.receive { $0.contains { $0.name == "ready" } }.contains { $0.name == "ready" })
        }
        try await bench.publish(id, 1...1)
        #expect(client.receive(id, 1).contains { $0.key == "\(id) 1" })
        #expect(client.events.count { $0.name == "trouble" } == 1)
      }
    }
    log.close()
    let lines = try String(decoding: file.contents(), as: UTF8.self).split(separator: "\n")
    #expect(lines.count == 2, "\(lines)")
    #expect(lines.first?.contains("Kafka cannot be reached") == true)
    #expect(lines.last?.contains("Kafka can be reached again") == true)
  }

  @Test("the history of a task is found after partitions were added", .enabled(if: TestKafka.isAvailable))
  func widened() async throws {
    let bootstrap = try await TestKafka.shared().bootstrap
    let kafka = try KafkaConfiguration(bootstrap: bootstrap)
    let topics = TopicPlan(prefix: "sse\(UniqueID.random())-")
    let admin = try KafkaAdmin(kafka)
    _ = try await admin.ensureTopics([topics.events, topics.progress].map { TopicSpec(name: $0, partitions: 3) })
    await admin.close()
    try await EventBench.run(kafka, topics) { bench in
      try await bench.serving { port, _ in
        let client = try EventClient(port)
        client.receive { $0.last?.name == "ready" }
        try await TestKafka.widen(topics.events, to: 6, at: bootstrap)
        // The last partition stays empty, so that records alone do not tell how many there are.
        var id = UniqueID.random()
        while KafkaReader.partition(of: id.utf8, count: 6) != 4 || KafkaReader.partition(of: id.utf8, count: 5) == 4 {
          id = .random()
        }
        let late = EventBench(kafka: kafka, topics: topics, producer: try KafkaProducer(kafka))
        try await late.publish(id, 1...3)
        await late.producer.close()
        client.receive(id, 3)
        let history = try EventClient(port, "?task=\(id)&from=start").receive(id, 3)
        #expect(history.filter { $0.name == "message" }.map(\.key) == (1...3).map { "\(id) \($0)" })
      }
    }
  }

  @Test("a client whose filter lets nothing pass comes on, although it may read for a short time only")
  func narrow() async throws {
    try await EventBench.run { bench in
      let (id, other) = (UniqueID.random(), UniqueID.random())
      let cursor = try await Self.cursor(of: bench)
      try await bench.publish(other, 1...500)
      try await bench.publish(id, 1...1, .failed)
      try await bench.serving({ events, _ in
        events.prefill = 0
        events.catchUpTime = .milliseconds(200)
      }) { port, _ in
        var events: [EventClient.Event] = []
        for _ in 0..<100 where !events.contains(where: { $0.name == "message" }) {
          let client = try EventClient(port, "?type=failed", after: events.last { $0.id != nil }?.id ?? cursor)
          events += client.receive { $0.contains { $0.name == "message" } }
        }
        #expect(events.filter { $0.name == "message" }.map(\.key) == ["\(id) 1"])
      }
    }
  }

  @Test("a client that waits until it may read hears from the server") func waits() async throws {
    try await EventBench.run { bench in
      let cursor = try await Self.cursor(of: bench)
      try await bench.publish(.random())
      try await bench.serving({ events, _ in
        events.prefill = 0
        events.catchUps = 0
        events.ping = .milliseconds(20)
      }) { port, _ in
        let client = try EventClient(port, after: cursor)
        let events = client.receive { $0.contains { $0.name == "ping" } }
        // It keeps the cursor that it has.
        #expect(!events.isEmpty && events.allSatisfy { $0.name == "ping" && $0.id == nil })
      }
    }
  }

  @Test("a slow client leaves its place to one that waits, and misses nothing") func turns() async throws {
    try await EventBench.run { bench in
      let id = UniqueID.random()
      let cursor = try await Self.cursor(of: bench)
      let long = ["a": String(repeating: "x", count: 20_000)]
      for part in 0..<5 { try await bench.publish(id, 10 * part + 1...10 * part + 10, labels: long) }
      try await bench.serving({ events, server in
        events.prefill = 0
        events.catchUps = 1
        events.catchUpTurn = .milliseconds(1500)
        events.ping = .milliseconds(20)
        server.write = .seconds(120)
      }) { port, _ in
        // Little fits into the kernel, so the rest waits until it reads on.
        let slow = try EventClient(port, after: cursor, receiveBuffer: 4096)
        slow.receive { $0.contains { $0.name == "message" } }
        let other = try EventClient(port, after: cursor)
        other.receive { $0.contains { $0.name == "ping" } }
        // Its turn ends meanwhile.
        try await Task.sleep(for: .seconds(2))
        let part = slow.receive { $0.contains { $0.name == "ready" } }
        #expect(!part.contains { $0.name == "ready" })
        #expect(other.receive { $0.contains { $0.name == "ready" } }.contains { $0.name == "ready" })
        let last = try #require(slow.events.last { $0.name == "message" })
        let sequence = try #require(last.key.split(separator: " ").last.flatMap { Int($0) })
        try #require(sequence < 50)
        let again = try EventClient(port, after: last.id)
        let rest = again.receive { $0.contains { $0.name == "ready" } }.filter { $0.name == "message" }
        #expect(rest.map(\.key) == (sequence + 1...50).map { "\(id) \($0)" })
      }
    }
  }

  /// The cursor of the present.
  private static func cursor(of bench: EventBench) async throws -> String? {
    let cursor = Lock<String?>(nil)
    try await bench.serving { port, _ in
      let id = try EventClient(port).receive { $0.last?.name == "ready" }.last?.id
      cursor.withLock { $0 = id }
    }
    return cursor.withLock { $0 }
  }
}
