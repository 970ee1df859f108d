import HTTPServer
import LocalFleet
import ReelhaulClient
import ReelhaulKafka
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import ControlAPI

@Suite struct EventsTests {
  @Test("events come as they happen, and only those that the filters let pass") func filters() async throws {
    try await EventBench.run { bench in
      try await bench.serving { port, _ in
        let (mine, other, last) = (UniqueID.make(), UniqueID.make(), UniqueID.make())
        let all = try EventClient(port)
        let one = try EventClient(port, "?task=\(mine)")
        let films = try EventClient(port, "?queue=films,clips&kind=noop&state=queued")
        let ends = try EventClient(port, "?type=failed,succeeded")
        for client in [all, one, films, ends] { client.receive { $0.last?.name == "ready" } }
        try await bench.publish(mine, 1...2)
        try await bench.publish(other, 1...1, queue: "films")
        try await bench.publish(other, 2...2, .succeeded, queue: "films")
        try await bench.publish(other, 3...3, .removed)
        try await bench.publish(last, 1...1, .failed, queue: "clips")
        try await bench.publish(mine, 3...3)
        let seen = Set(
          all.receive { $0.count { $0.name == "message" } == 7 }.map(\.key))
        #expect(seen == ["\(mine) 1", "\(mine) 2", "\(mine) 3", "\(other) 1", "\(other) 2", "\(other) 3", "\(last) 1"])
        #expect(one.receive(mine, 3).map(\.key) == ["\(mine) 1", "\(mine) 2", "\(mine) 3"])
        // A removed task has no queue any more.
        let both = films.receive { $0.count == 3 }
        #expect(Set(both.map(\.key)) == ["\(other) 1", "\(other) 2", "\(last) 1"])
        #expect(Set(ends.receive { $0.count == 2 }.map(\.key)) == ["\(other) 2", "\(last) 1"])
      }
    }
  }

  @Test(
    "a client that comes back misses nothing and gets nothing twice, from memory and from Kafka, after restarts too")
  func resumes() async throws {
    try await EventBench.run { bench in
      let ids = (0..<6).map { _ in UniqueID.make() }
      let seen = Lock<[String]>([])
      let cursor = Lock<String?>(nil)
      for (round, prefill) in [0, 1000, 0, 0].enumerated() {
        try await bench.serving({ events, _ in
          events.prefill = Int64(prefill)
          events.ringItems = 40
        }) { port, _ in
          for part in 0..<3 {
            // Of a connection only a part is used: what was sent behind it counts as lost on its way.
            var client = try EventClient(port, after: cursor.withLock { $0 })
            if cursor.withLock({ $0 }) == nil {
              cursor.withLock { $0 = client.receive { $0.last?.name == "ready" }.last?.id }
            }
            let first = (3 * round + part) * 10 + 1
            for id in ids { try await bench.publish(id, first...first + 9) }
            let wanted = part == 2 ? 60 * 3 * (round + 1) : 60 * (3 * round + part) + 25
            let missing = wanted - seen.withLock { $0.count }
            var events: [EventClient.Event] = []
            for _ in 0..<20 where events.count < missing {
              let rest = missing - events.count
              events += client.receive { $0.count { $0.name == "message" } >= rest }.filter { $0.name == "message" }
              // The server may end a stream at any time.
              if events.count < missing {
                client = try EventClient(port, after: events.last?.id ?? cursor.withLock { $0 })
              }
            }
            seen.withLock { $0 += events.prefix(missing).map(\.key) }
            cursor.withLock { $0 = events.prefix(missing).last?.id }
          }
        }
      }
      let keys = seen.withLock { $0 }
      #expect(keys.count == 60 * 12 && Set(keys).count == keys.count)
      for id in ids { #expect(keys.filter { $0.hasPrefix("\(id)") } == (1...120).map { "\(id) \($0)" }) }
    }
  }

  @Test("a cursor of a topic that was made anew is told as a gap, and the client goes on with the present")
  func anew() async throws {
    let old = Lock<String?>(nil)
    let id = UniqueID.make()
    try await EventBench.run { bench in
      try await bench.serving { port, _ in
        let client = try EventClient(port)
        client.receive { $0.last?.name == "ready" }
        try await bench.publish(id, 1...5)
        old.withLock { $0 = client.receive(id, 5).last?.id }
      }
    }
    // Longer than the former one, so that the offsets alone look right.
    for prefill in [0, 1000] {
      try await EventBench.run { bench in
        try await bench.publish(id, 11...30)
        try await bench.serving({ events, _ in events.prefill = Int64(prefill) }) { port, _ in
          let client = try EventClient(port, after: old.withLock { $0 })
          #expect(client.receive { $0.last?.name == "ready" }.map(\.name) == ["gap", "ready"])
          try await bench.publish(id, 31...31)
          #expect(client.receive(id, 31).map(\.key) == ["\(id) 31"])
        }
      }
    }
  }

  @Test("what is gone of several partitions is told as one gap") func goneEverywhere() async throws {
    let old = Lock<String?>(nil)
    let ids = (0..<30).map { _ in UniqueID.make() }
    try await EventBench.run { bench in
      try await bench.serving { port, _ in
        let client = try EventClient(port)
        client.receive { $0.last?.name == "ready" }
        for id in ids { try await bench.publish(id) }
        old.withLock { $0 = client.receive { $0.count { $0.name == "message" } == ids.count }.last?.id }
      }
    }
    let positions = try #require(old.withLock { $0 }.flatMap { EventCursor($0) }).positions
    #expect(positions.count { $0 > 0 } == EventBench.partitions)
    // The topic is empty after a restart of the embedded broker.
    try await EventBench.run { bench in
      try await bench.serving { port, _ in
        let client = try EventClient(port, after: old.withLock { $0 })
        #expect(client.receive { $0.last?.name == "ready" }.map(\.name) == ["gap", "ready"])
      }
    }
  }

  @Test("what Kafka no longer has is told as a gap before what follows it") func lost() async throws {
    try await EventBench.run { bench in
      let id = UniqueID.make()
      let cursor = Lock<String?>(nil)
      try await bench.serving { port, _ in
        let client = try EventClient(port)
        client.receive { $0.last?.name == "ready" }
        try await bench.publish(id, 1...2)
        cursor.withLock { $0 = client.receive(id, 2).last?.id }
      }
      // The embedded broker keeps 5 MB of a partition, compressed.
      var random = SystemRandomNumberGenerator()
      let long = ["a": String((0..<100_000).map { _ in "0123456789abcdef".randomElement(using: &random) ?? "0" })]
      for sequence in 3...90 {
        let isSmall = sequence % 5 == 0
        try await bench.publish(id, sequence...sequence, isSmall ? .failed : .submitted, labels: isSmall ? [:] : long)
      }
      try await bench.serving({ events, _ in events.prefill = 0 }) { port, _ in
        let client = try EventClient(port, "?type=failed", after: cursor.withLock { $0 })
        let events = client.receive(id, 90)
        #expect(events.first?.name == "gap")
        let keys = events.filter { $0.name == "message" }.map(\.key)
        let all = stride(from: 5, through: 90, by: 5).map { "\(id) \($0)" }
        #expect(keys.count < all.count && keys == all.suffix(keys.count))
      }
    }
  }

  @Test("a task is told from its submission on") func history() async throws {
    try await EventBench.run { bench in
      let (id, other) = (UniqueID.make(), UniqueID.make())
      try await bench.publish(id, 1...3)
      try await bench.publish(other)
      try await bench.serving({ events, _ in events.prefill = 0 }) { port, _ in
        let client = try EventClient(port, "?task=\(id)&from=start")
        client.receive(id, 3)
        try await bench.publish(id, 4...4)
        client.receive(id, 4)
        #expect(client.events.filter { $0.name == "message" }.map(\.key) == (1...4).map { "\(id) \($0)" })
      }
    }
  }

  @Test("a client that does not read is dropped without harm to others, and comes back without a gap") func slow()
    async throws
  {
    try await EventBench.run { bench in
      try await bench.serving({ events, server in
        events.ringBytes = 400_000
        // On a busy machine the quick one does not read for seconds.
        server.write = .seconds(10)
      }) { port, server in
        let id = UniqueID.make()
        // Little fits into the kernel, which would otherwise take all of it.
        let (slow, quick) = (try EventClient(port, receiveBuffer: 4096), try EventClient(port))
        let ready = slow.receive { $0.last?.name == "ready" }
        quick.receive { $0.last?.name == "ready" }
        let long = ["a": String(repeating: "x", count: 20_000)]
        for part in 0..<10 {
          try await bench.publish(id, 10 * part + 1...10 * part + 10, labels: long)
          quick.receive(id, 10 * part + 10)
        }
        try await eventually("the slow one is dropped") {
          try await bench.loop.task { server.connectionCount }.value == 1
        }
        let before = slow.receive { _ in false }
        #expect(before.count < 100)
        let again = try EventClient(port, after: (before.last ?? ready.last)?.id)
        let rest = again.receive(id, 100)
        #expect((before + rest).filter { $0.name == "message" }.map(\.key) == (1...100).map { "\(id) \($0)" })
      }
    }
  }

  @Test("samples of progress come where they are asked for") func progress() async throws {
    try await EventBench.run { bench in
      try await bench.serving { port, _ in
        let (id, other) = (UniqueID.make(), UniqueID.make())
        let client = try EventClient(port, "?task=\(id)&progress=true")
        client.receive { $0.last?.name == "ready" }
        // The reader of samples opens by itself.
        let found = Lock(false)
        let sending = Task {
          while !found.withLock({ $0 }) {
            try await bench.sample(of: other)
            try await bench.sample(of: id)
            try await Task.sleep(for: .milliseconds(20))
          }
        }
        let events = client.receive { $0.last?.name == "progress" }
        found.withLock { $0 = true }
        try await sending.value
        #expect(events.allSatisfy { $0.name == "progress" && $0.data.contains("\(id)") && $0.id == nil })
      }
    }
  }

  @Test("wrong filters and cursors are refused with a reason") func wrong() async throws {
    try await APIBench.run { bench in
      for query in [
        "task=7", "state=happy", "type=submitted,", "queue=", "from=start", "from=start&task=", "progress=1",
        "lastEventId=x", "lastEventId=!", "what=1", "type=submitted,happened", "queue=a,,b", "task=",
        "kind=\(repeatElement("noop", count: 101).joined(separator: ","))",
      ] {
        let answer = await bench.ask("GET", "/v1/events?\(query)")
        #expect(answer.status == 400, "\(query): \(answer)")
      }
      #expect(await bench.ask("GET", "/v1/events", "", ["Last-Event-ID": "AQ"]).status == 400)
      // This server has no Kafka.
      #expect(await bench.ask("GET", "/v1/events").status == 503)
    }
  }

  @Test(
    "events of an aborted transaction are not told, and the marks of transactions are no gap",
    .enabled(if: TestKafka.isAvailable))
  func transactions() async throws {
    let node = try await TestKafka.shared()
    let kafka = try KafkaConfiguration(bootstrap: node.bootstrap)
    let topics = TopicPlan(prefix: "sse\(UniqueID.make())-")
    let admin = try KafkaAdmin(kafka)
    _ = try await admin.ensureTopics(
      [topics.events, topics.progress].map { TopicSpec(name: $0, partitions: EventBench.partitions) })
    await admin.close()
    try await EventBench.run(kafka, topics) { bench in
      let id = UniqueID.make()
      let relay = try TransactionalProducer(kafka, id: "sse\(UniqueID.make())", timeout: .seconds(60))
      try await relay.fence(within: .seconds(60))
      let seen = Lock<[EventClient.Event]>([])
      for round in 0..<4 {
        try await bench.serving({ events, _ in events.prefill = round < 2 ? 0 : 1000 }) { port, _ in
          let client = try EventClient(port, after: seen.withLock { $0.last?.id })
          if round == 0 { client.receive { $0.last?.name == "ready" } }
          for sequence in 10 * round + 1...10 * round + 10 {
            try await relay.publish([bench.message(id, sequence, .submitted)], within: .seconds(60))
          }
          let events = client.receive(id, 10 * round + 10)
          seen.withLock { $0 += events.filter { $0.name != "ready" } }
        }
      }
      #expect(seen.withLock { $0.map(\.key) } == (1...40).map { "\(id) \($0)" })
      await relay.close()
    }
  }

  @Test("a cursor is the same after its text, and other texts are none") func cursors() {
    for cursor in [
      EventCursor(positions: []), EventCursor(positions: [0, 1, 127, 128, .max]),
      EventCursor(positions: [5, 6], witness: .init(partition: 1, timestamp: 1_700_000_000_000)),
    ] {
      #expect(EventCursor(cursor.text) == cursor)
      #expect(EventCursor(cursor.text + "A") == nil && EventCursor(cursor.text.dropLast()) == nil)
    }
    // `FleetClient` sends it for the beginning.
    #expect(EventCursor(positions: []).text == "AQA")
    #expect(EventCursor("") == nil && EventCursor("AgA") == nil && EventCursor("____") == nil)
    var random = SplitMix64(seed: 7)
    for _ in 0..<10_000 {
      let text = String(
        decoding: (0..<Int.random(in: 0..<40, using: &random)).map { _ in
          Array("ABab01-_".utf8).randomElement(using: &random) ?? 0
        }, as: UTF8.self)
      // Whatever is taken says the same again.
      if let cursor = EventCursor(text) { #expect(EventCursor(cursor.text) == cursor) }
    }
  }

  @Test("whoever may see only some queues sees no event that is not known to be of one of them") func allowed() throws {
    let filter = EventFilter([:], allowed: ["films"])
    #expect(filter.admits(TaskTraits(queue: "films", kind: "noop", state: "queued")))
    #expect(!filter.admits(TaskTraits(queue: "other", kind: "noop", state: "queued")) && !filter.admits(nil))
    let narrow = EventFilter(["queue": "other"], allowed: ["films"])
    #expect(!narrow.admits(TaskTraits(queue: "other", kind: "noop", state: "queued")))
  }
}
