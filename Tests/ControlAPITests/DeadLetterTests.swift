import HTTPServer
import LocalFleet
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

@testable import ControlAPI
@testable import ReelhaulClient
@testable import ReelhaulKafka

@Suite struct DeadLetterTests {
  /// A topic of two partitions, in memory.
  struct Letters: DeadLetterSource {
    var letters: [DeadLetter]

    func page(before offsets: [Int32: Int64]?, limit: Int) async throws -> DeadLetterPage {
      let older = letters.filter { $0.offset < offsets?[$0.partition] ?? .max }.sorted { $0.at > $1.at }
      let page = Array(older.prefix(limit))
      var next = offsets ?? [0: 100, 1: 100]
      for letter in page { next[letter.partition] = letter.offset }
      return DeadLetterPage(letters: page, next: older.count > limit ? next : nil)
    }

    func letter(_ partition: Int32, _ offset: Int64) async throws -> DeadLetter? {
      letters.first { $0.partition == partition && $0.offset == offset }
    }
  }

  static func letter(_ partition: Int32, _ offset: Int64, _ text: String, key: UniqueID? = nil, bytes: Int? = nil)
    -> DeadLetter
  {
    DeadLetter(
      partition: partition, offset: offset, at: Timestamp(microseconds: (offset * 2 + Int64(partition)) * 1_000_000),
      origin: MessageOrigin(topic: "reelhaul.commands", partition: 5, offset: 77, timestamp: -1),
      code: "illegal_transition", reason: "pause is not possible while the task is failed",
      key: key.map { Array("\($0)".utf8) }, value: Array(text.utf8), bytes: bytes)
  }

  private func ask(
    _ bench: APIBench, _ letters: [DeadLetter], _ method: String, _ target: String, _ body: String = ""
  ) async -> (status: Int, body: String) {
    let other = APIBench(
      store: bench.store, pool: bench.pool, loop: bench.loop, deadLetters: Letters(letters: letters))
    let answer = await other.ask(method, target, body)
    let sent = other.sent.withLock { $0 }
    bench.sent.withLock { $0 += sent }
    return (answer.status, answer.body)
  }

  @Test("dead letters are listed from the newest on, page by page, without those that were dropped")
  func list() async throws {
    try await APIBench.run { bench in
      let task = UniqueID.make()
      let letters = (0..<5).flatMap { offset in
        (0..<2).map { Self.letter(Int32($0), Int64(offset), "x \(offset) \($0)", key: task) }
      }
      let first = await ask(bench, letters, "GET", "/v1/dead-letters?limit=3")
      let ids = { (body: String) in
        body.split(separator: #"{"id":""#).dropFirst().map { String($0.prefix { $0 != "\"" }) }
      }
      #expect(first.status == 200 && ids(first.body) == ["1-4", "0-4", "1-3"], "\(first)")
      #expect(
        first.body.contains(#""topic":"reelhaul.commands","partition":5,"offset":77,"code":"illegal_transition""#))
      #expect(first.body.contains(#""taskId":"\#(task)""#) && first.body.contains(#""hasMore":true"#))
      let next = try #require(first.body.split(separator: #""next":""#).last?.prefix { $0 != "\"" })
      let second = await ask(bench, letters, "GET", "/v1/dead-letters?limit=100&cursor=\(next)")
      #expect(ids(second.body) == ["0-3", "1-2", "0-2", "1-1", "0-1", "1-0", "0-0"])
      #expect(second.body.hasSuffix(#""hasMore":false,"next":null}"#))

      #expect(await ask(bench, letters, "POST", "/v1/dead-letters/0-4/actions/drop", "{}").status == 200)
      let left = await ask(bench, letters, "GET", "/v1/dead-letters?limit=3")
      #expect(ids(left.body) == ["1-4", "1-3", "0-3"])
      // A record of a topic that was created again has the place, and is another one.
      var young = letters
      young[8].at = Timestamp(microseconds: 90_000_000)
      #expect(ids(await ask(bench, young, "GET", "/v1/dead-letters?limit=1").body) == ["0-4"])

      for wrong in ["limit=0", "limit=201", "cursor=x", "cursor=1-2.1-3", "cursor=-1-3"] {
        #expect(await ask(bench, letters, "GET", "/v1/dead-letters?\(wrong)").status == 400, "\(wrong)")
      }
      for id in ["9-9", "x", "1", "-1-3", "99999999999-1"] {
        #expect(await ask(bench, letters, "GET", "/v1/dead-letters/\(id)").status == 404, "\(id)")
      }
    }
  }

  @Test("letters behind very many that were dropped are found, page by page and at once")
  func behindDropped() async throws {
    try await APIBench.run { bench in
      // As many as no page looks at.
      let letters = (0..<1200).map { Self.letter(0, $0, "x") }
      let source = Letters(letters: letters)
      for letter in letters.dropFirst(2) { try await bench.store.mark(letter.mark, .dropped, actor: nil) }
      let page = try await source.pending(before: nil, limit: 50, in: bench.store)
      #expect(page.letters.isEmpty && page.next != nil)
      for (limit, names, hasMore) in [(1, ["0-1"], true), (2, ["0-1", "0-0"], false), (100, ["0-1", "0-0"], false)] {
        let newest = try await source.newest(limit, in: bench.store)
        #expect(newest.letters.map(\.name) == names && newest.hasMore == hasMore, "\(limit)")
      }
    }
  }

  @Test("a replay is one command however often it is asked for, with the id of the letter and not that of the refusal")
  func replay() async throws {
    try await APIBench.run { bench in
      let task = UniqueID.make()
      #expect(await bench.submit(task) == 202)
      let text = #"{"command":"pause","id":"\#(UniqueID.make())","taskId":"\#(task)","actor":"anna"}"#
      let letters = [Self.letter(0, 3, text, key: task)]
      for _ in 0..<2 {
        let answer = await ask(bench, letters, "POST", "/v1/dead-letters/0-3/actions/replay", "{}")
        #expect(answer.status == 202 && answer.body.contains(#""task":"\#(task)""#), "\(answer)")
      }
      let sent = bench.sent.withLock { $0.suffix(2) }
      #expect(Set(sent).count == 1)
      let seen0 = try await bench.store.task(task)?.state
      #expect(seen0 == .paused)
      let seen1 = try await bench.store.task(task)?.sequence
      #expect(seen1 == 2)
      #expect(await ask(bench, letters, "GET", "/v1/dead-letters").body.hasPrefix(#"{"deadLetters":[]"#))

      // A corrected one is another command.
      let corrected = #"{"command":"resume","taskId":"\#(task)"}"#
      #expect(await ask(bench, letters, "POST", "/v1/dead-letters/0-3/actions/replay", corrected).status == 202)
      let seen2 = try await bench.store.task(task)?.state
      #expect(seen2 == .queued)
    }
  }

  @Test("a replay of the same text at the same place of a topic that was created again is another command")
  func anotherTopic() throws {
    let text = Array(#"{"command":"pause","taskId":"\#(UniqueID.make())"}"#.utf8)
    let ids = try ["1700000000000", "1700000000001", "-1", nil].map { timestamp in
      let headers = [("topic", "c"), ("partition", "5"), ("offset", "77"), ("timestamp", timestamp)]
      let record = KafkaRecord(
        topic: "d", partition: 0, offset: 3, key: nil, value: text,
        headers: headers.compactMap { name, value in value.map { KafkaHeader("dead-letter-\(name)", $0) } })
      let command = try DeadLetter(TopicTail.Record(record: record, size: text.count)).replay(by: nil)
      guard case .control(let control) = command else { throw HTTPError(500, "\(command)") }
      return control.id
    }
    #expect(Set(ids).count == 3, "\(ids)")
    // The letters of older workers tell no time.
    let former = UniqueID(derivedFrom: Array("reelhaul replay c 5 77 ".utf8) + text + [0] + text)
    #expect(ids[2...] == [former, former])
  }

  @Test("what is no command, or only the beginning of one, must be corrected first") func unreadable() async throws {
    try await APIBench.run { bench in
      let letters = [
        Self.letter(0, 1, "no JSON"), Self.letter(0, 2, "{}", bytes: 1_000_000), Self.letter(1, 4, "no JSON"),
      ]
      for offset in [1, 2] {
        let answer = await ask(bench, letters, "POST", "/v1/dead-letters/0-\(offset)/actions/replay", "{}")
        let code = offset == 1 ? "malformed_json" : "too_large"
        #expect(answer.status == 422 && answer.body.contains(#""code":"\#(code)""#), "\(answer)")
      }
      let body = #"{"command":"submit","task":{"kind":"noop","source":"noop://a/"}}"#
      // The last is a second letter of the same command.
      for name in ["0-1", "0-1", "1-4"] {
        #expect(await ask(bench, letters, "POST", "/v1/dead-letters/\(name)/actions/replay", body).status == 202)
      }
      let seen3 = try await bench.store.counts()
      #expect(seen3 == [.queued: 1], "the same task, sent again")
    }
  }

  @Test("while Kafka is away, a read says that Kafka cannot be read") func kafkaIsAway() async throws {
    try await APIBench.run { bench in
      let reader = try DeadLetterReader(KafkaConfiguration(bootstrap: "127.0.0.1:1"), topicPrefix: "away")
      let away = APIBench(store: bench.store, pool: bench.pool, loop: bench.loop, deadLetters: reader)
      let answer = await away.ask("GET", "/v1/dead-letters")
      #expect(answer.status == 503 && answer.body.contains("Kafka cannot be read"), "\(answer)")
      await reader.close()
    }
  }

  @Test("pages of a broker's letters have all of them once, the newest first, also where one partition has most")
  func pagesOfABroker() async throws {
    let broker = try DevelopmentBroker(topics: [TopicSpec(name: "pages.dead-letters", partitions: 4)])
    let kafka = try KafkaConfiguration(bootstrap: broker.bootstrap)
    let producer = try KafkaProducer(kafka)
    let partitions: [Int32] = [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 2]
    for (index, partition) in partitions.enumerated() {
      // So that their times differ.
      try await Task.sleep(for: .milliseconds(2))
      try await producer.sendAll([
        KafkaMessage(topic: "pages.dead-letters", key: nil, value: Array("\(index)".utf8), partition: partition)
      ])
    }
    let reader = try DeadLetterReader(kafka, topicPrefix: "pages.")
    for limit in [1, 4, 9, 100] {
      var texts: [String] = []
      var next: [Int32: Int64]?
      repeat {
        let page = try await reader.page(before: next, limit: limit)
        #expect(page.letters.count == min(limit, partitions.count - texts.count), "\(limit)")
        texts += page.letters.map { String(decoding: $0.value, as: UTF8.self) }
        next = page.next
      } while next != nil
      #expect(texts == partitions.indices.reversed().map { "\($0)" }, "\(limit)")
    }
    // What was read last is not read again, unless there is more.
    #expect(try await reader.page(before: nil, limit: 4).letters.first?.name == "2-1")
    #expect(try await reader.page(before: nil, limit: 4).letters.first?.name == "2-1")
    try await producer.sendAll([KafkaMessage(topic: "pages.dead-letters", key: nil, value: [49], partition: 3)])
    #expect(try await reader.page(before: nil, limit: 4).letters.first?.name == "3-0")
    await reader.close()
    await producer.close()
    await broker.close()
  }

  @Test("a page ends where a partition has older letters that were not read") func merge() {
    let letters = [Self.letter(0, 8, "a"), Self.letter(0, 9, "b"), Self.letter(1, 1, "c"), Self.letter(1, 2, "d")]
    let ranges: [Int32: Range<Int64>] = [0: 8..<10, 1: 1..<3]
    let bounds: [Int32: Range<Int64>] = [0: 0..<10, 1: 1..<3]
    let page = DeadLetterReader.newest(letters, in: ranges, of: bounds, limit: 4)
    // Partition 0 has letters before 8 that may be newer than those of partition 1.
    #expect(page.letters.map(\.name) == ["0-9", "0-8"] && page.next == [0: 8, 1: 3])
    let all = DeadLetterReader.newest(letters, in: ranges, of: [0: 8..<10, 1: 1..<3], limit: 4)
    #expect(all.letters.map(\.name) == ["0-9", "0-8", "1-2", "1-1"] && all.next == nil)
    let two = DeadLetterReader.newest(letters, in: ranges, of: [0: 8..<10, 1: 1..<3], limit: 1)
    #expect(two.letters.map(\.name) == ["0-9"] && two.next == [0: 9, 1: 3])
    #expect(DeadLetterReader.newest([], in: [0: 0..<0], of: [0: 0..<0], limit: 5) == DeadLetterPage(letters: []))
  }
}
