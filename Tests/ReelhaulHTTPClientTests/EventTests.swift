import Foundation
import HTTPServer
import ReelhaulSystem
import Testing

@testable import ReelhaulHTTPClient

@Suite struct EventTests {
  private static let stream = """
    \u{FEFF}retry: 7
    : a comment

    id: 1
    event: one
    data: {"a":
    data:1}

    data: two\r
    \r
    event: nothing

    id
    data: three

    data: cut off
    """

  @Test("a stream is read alike wherever its pieces end", arguments: [1, 2, 3, 5, 7, 11, 1000])
  func pieces(_ size: Int) throws {
    var parser = ServerSentEventParser(lastID: "0")
    let bytes = Data(Self.stream.utf8)
    var events: [ServerSentEvent] = []
    for start in stride(from: 0, to: bytes.count, by: size) {
      events += try parser.read(bytes[start..<min(start + size, bytes.count)])
    }
    #expect(
      events == [
        ServerSentEvent(name: "one", data: "{\"a\":\n1}", id: "1"), ServerSentEvent(data: "two", id: "1"),
        ServerSentEvent(data: "three", id: ""),
      ])
    #expect(parser.retry == .milliseconds(7))
  }

  @Test("a number that no type of Swift holds spoils nothing around it")
  func hugeNumber() throws {
    let text = #"{"a": [1e400, 1], "b": {"c": 1e-400}, "d": "x"}"#
    let value = try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
    #expect(value["a"] == [nil, 1] && value["d"] == "x")
  }

  @Test("an endless line is refused") func endless() {
    var parser = ServerSentEventParser()
    let piece = Data(repeating: 97, count: 1 << 20)
    #expect(throws: ServerSentEventParser.TooLong.self) {
      for _ in 0...4 { _ = try parser.read(piece) }
    }
  }

  @Test("events go on behind the last one after each break, and end with the task") func breaks() async throws {
    let id = UUID()
    try await ScriptedAPI.run { number, _ in
      switch number {
      case 1: .events(": hello\n\n" + Documents.event(id, "started", "running", sequence: 2, cursor: "c2"))
      case 2: .problem(503, "restarting")
      case 3: .events(Documents.event(id, "paused", "paused", sequence: 3, cursor: "c3") + "id: c4\ndata: {\"half")
      default:
        .events(
          Documents.event(id, "succeeded", "succeeded", sequence: 4, cursor: "c4")
            + Documents.event(id, "more", "queued", sequence: 5, cursor: "c5"))
      }
    } _: { client, api in
      var types: [String] = []
      for try await event in client.events(of: id) { types.append(event.type) }
      #expect(types == ["started", "paused", "succeeded"])
      let cursors = api.requests.withLock { $0.map { $0.headers["last-event-id"] } }
      #expect(cursors == [nil, "c2", "c2", "c3"])
    }
  }

  @Test(
    "the events of a task that has ended already end when nothing more comes, but not before its last event",
    .timeLimit(.minutes(1)), arguments: [nil, "succeeded", "running"])
  func endedBefore(state: String?) async throws {
    let id = UUID()
    let (ping, ready) = ("event: ping\ndata: {}\n\n", "id: c0\nevent: ready\ndata: {}\n\n")
    let trouble = "event: trouble\ndata: {}\n\n"
    let last = Documents.event(id, "succeeded", "succeeded", sequence: 4, cursor: "c4")
    for hasLast in [true, false] where hasLast || state == "succeeded" {
      try await ScriptedAPI.run { _, request in
        guard request.path.hasSuffix("/events") else {
          return state.map { .json(Documents.task(id, $0, sequence: 4)) } ?? .problem(404, "there is no such task")
        }
        return .events(ping + ready + (hasLast ? (state == "succeeded" ? trouble : "") + ping + last : ping))
      } _: { client, api in
        var types: [String] = []
        for try await event in client.events(of: id) { types.append(event.type) }
        #expect(types == (hasLast ? ["succeeded"] : []))
        // One that is known, and may be removed without a word, is looked at.
        #expect(api.requests.withLock { $0.count } == (state == "running" ? 3 : 2))
      }
    }
  }

  @Test("a page that is no stream of events is refused, even one without an end", .timeLimit(.minutes(1)))
  func page() async throws {
    try await ScriptedAPI.run { _, _ in
      HTTPResponse(
        headers: ["Content-Type": "text/html; charset=utf-8"],
        body: .stream { stream in
          while stream.send(Array("<p>Sign in</p>\n\n".utf8)) { try? await Task.sleep(for: .milliseconds(5)) }
        })
    } _: { client, api in
      let error = await #expect(throws: FleetError.self) {
        for try await _ in client.events(of: UUID()) {}
      }
      #expect(error?.code == .unreadableAnswer && error?.message.contains("text/html") == true)
      #expect(api.requests.withLock { $0.count } == 1)
    }
  }

  @Test("streams that end before any event are not followed for ever", .timeLimit(.minutes(1)))
  func streamsWithoutEvents() async throws {
    try await ScriptedAPI.run { _, _ in
      .events(": hello\n\n")
    } _: { client, api in
      let error = await #expect(throws: FleetError.self) {
        for try await _ in client.events(of: UUID()) {}
      }
      #expect(error?.code == .unreachable && api.requests.withLock { $0.count } == 5)
    }
  }

  @Test("a kept cursor whose events are gone is an error, and not a silent gap") func gap() async throws {
    try await ScriptedAPI.run { _, _ in
      .events("event: gap\ndata: {}\n\n")
    } _: { client, _ in
      let error = await #expect(throws: FleetError.self) {
        for try await _ in client.events(from: .after(.init("old"))) {}
      }
      #expect(error?.code == .eventsLost)
    }
  }

  @Test("the earliest events of all tasks come from the beginning, and what Kafka lost before them is no error")
  func earliest() async throws {
    let id = UUID()
    try await ScriptedAPI.run { _, _ in
      .events("event: gap\ndata: {}\n\n" + Documents.event(id, "started", "running", sequence: 2, cursor: "c2"))
    } _: { client, api in
      for try await (event, cursor) in client.events(from: .earliest) {
        #expect(event.type == "started" && cursor?.text == "c2")
        break
      }
      for try await _ in client.events(of: id, from: .earliest) { break }
      let requests = api.requests.withLock { $0 }
      let all = try #require(requests.first)
      #expect(all.headers["last-event-id"] == "AQA" && !all.target.contains("from="))
      let one = try #require(requests.first { $0.target.contains("task=") })
      #expect(one.headers["last-event-id"] == nil && one.target.contains("from=start"))
    }
  }

  @Test("the events of all tasks that match are those of the queues, kinds and states") func matching() async throws {
    try await ScriptedAPI.run { _, _ in
      .events(Documents.event(UUID(), "started", "running", sequence: 2, cursor: "c2"))
    } _: { client, api in
      var query = TaskQuery()
      (query.queues, query.kinds, query.states, query.text) = (["q", "r"], ["k"], [.running], "x")
      for try await _ in client.events(matching: query) { break }
      let asked = api.requests.withLock { (try? $0[0].query) ?? [] }
      #expect(asked.map { "\($0.name): \($0.value)" } == ["state: running", "queue: q,r", "kind: k"])
    }
  }

  @Test("what comes much faster than it is read ends the stream, and does not fill the memory")
  func flood() async throws {
    let isOver = Lock(false)
    try await ScriptedAPI.run { _, _ in
      HTTPResponse(
        headers: ["Content-Type": "text/event-stream"],
        body: .stream { stream in
          let piece = [UInt8](repeating: UInt8(ascii: ":"), count: 32 << 10)
          for _ in 0..<512 {
            guard stream.send(piece), await stream.flush() else { break }
          }
          isOver.withLock { $0 = true }
        })
    } _: { client, _ in
      let pieces = StreamingExchange.pieces(of: client.request("GET", ["v1", "events"]), timeout: .seconds(60))
      let deadline = ContinuousClock.now + .seconds(60)
      while !isOver.withLock({ $0 }), .now < deadline { try await Task.sleep(for: .milliseconds(5)) }
      var count = 0
      let error = await #expect(throws: FleetError.self) {
        for try await piece in pieces { count += piece.count }
      }
      #expect(error?.code == .unreachable && count <= 8 << 20)
    }
  }

  @Test(
    "a gap after an event is an error, wherever the stream began", arguments: [FleetClient.EventStart.now, .earliest])
  func laterGap(start: FleetClient.EventStart) async throws {
    let id = UUID()
    try await ScriptedAPI.run { number, _ in
      number == 1
        ? .events(Documents.event(id, "started", "running", sequence: 2, cursor: "c2"))
        : .events("event: gap\ndata: {}\n\n" + Documents.event(id, "paused", "paused", sequence: 9, cursor: "c9"))
    } _: { client, _ in
      var types: [String] = []
      let error = await #expect(throws: FleetError.self) {
        for try await (event, _) in client.events(from: start) { types.append(event.type) }
      }
      #expect(error?.code == .eventsLost && types == ["started"])
    }
  }

  @Test("the events of a task end with its last one, also if the first have the document of the end")
  func newerDocument() async throws {
    let id = UUID()
    try await ScriptedAPI.run { _, _ in
      let events = (1...3).map { sequence in
        // The first number is the event's.
        Documents.event(id, "e\(sequence)", "canceled", sequence: 3, cursor: "c\(sequence)")
          .replacing(#""sequence":3"#, with: #""sequence":\#(sequence)"#, maxReplacements: 1)
      }
      return .events(events.joined())
    } _: { client, _ in
      var types: [String] = []
      for try await event in client.events(of: id) { types.append(event.type) }
      #expect(types == ["e1", "e2", "e3"])
    }
  }

  @Test("a stream is not far ahead of a slow reader, and loses nothing") func slowReader() async throws {
    let made = Lock(0)
    let stream: AsyncThrowingStream<Int, any Error> = FleetClient.stream { yield in
      for number in 0..<2000 {
        try await yield(number)
        made.withLock { $0 = number + 1 }
      }
    }
    var (read, ahead) = (0, 0)
    for try await number in stream {
      #expect(number == read)
      read += 1
      ahead = max(ahead, made.withLock { $0 } - read)
      if number == 0 {
        let deadline = ContinuousClock.now + .seconds(60)
        while made.withLock({ $0 }) < FleetClient.mostUnread, .now < deadline {
          try await Task.sleep(for: .milliseconds(1))
        }
      }
    }
    #expect(read == 2000 && ahead <= FleetClient.mostUnread + 1)
  }

  private final class Recorder: FleetTaskDelegate {
    let calls = Lock<[String]>([])

    func task(_ task: FleetTask, progressed progress: TaskProgress) {
      calls.withLock { $0.append("\(progress.bytesDone) of \(progress.bytesTotal ?? -1)") }
    }
    func task(_ task: FleetTask, changedFrom former: FleetTask.State?) {
      calls.withLock { $0.append("\(former?.rawValue ?? "–") → \(task.state)") }
    }
    func taskEnded(_ task: FleetTask) { calls.withLock { $0.append("ended") } }
  }

  @Test("a delegate is told of the state at once, of progress of this run only, and of the end")
  func delegate() async throws {
    let id = UUID()
    let sample = { @Sendable (epoch: Int, done: Int) in
      "event: progress\ndata: {\"taskId\":\"\(id)\",\"epoch\":\(epoch),\"bytesDone\":\(done),\"bytesTotal\":100,\"rate\":5,\"eta\":1}\n\n"
    }
    try await ScriptedAPI.run { _, request in
      guard request.path.hasSuffix("/events") else {
        return .json(Documents.task(id, "running", sequence: 2, done: 10))
      }
      return .events(
        "retry: 5\n\nevent: ready\ndata: {}\n\n" + Documents.event(id, "submitted", "queued", sequence: 1, cursor: "c1")
          + sample(1, 50)
          + sample(0, 20)
          + Documents.event(id, "succeeded", "succeeded", sequence: 3, cursor: "c3"))
    } _: { client, _ in
      let recorder = Recorder()
      let end = try await client.follow(id, delegate: recorder)
      #expect(end.state == .succeeded)
      #expect(
        recorder.calls.withLock { $0 } == [
          "– → running", "10 of 100", "50 of 100", "running → succeeded", "0 of 100", "ended",
        ])
    }
  }

  @Test("who waits for the end of a task learns that it was removed behind a gap", .timeLimit(.minutes(1)))
  func removed() async throws {
    let id = UUID()
    try await ScriptedAPI.run { number, request in
      guard request.path.hasSuffix("/events") else {
        return number < 3 ? .json(Documents.task(id, "running", sequence: 2)) : .problem(404, "there is no such task")
      }
      return .events("event: gap\ndata: {}\n\nevent: ready\ndata: {}\n\n")
    } _: { client, _ in
      let error = await #expect(throws: FleetError.self) { try await client.end(of: id) }
      #expect(error?.code == .notFound && error?.message == "the task was removed")
    }
  }

  @Test("who follows a task with a token that is not told of its removal learns of it", .timeLimit(.minutes(1)))
  func untoldRemoval() async throws {
    let id = UUID()
    let looks = Lock(0)
    try await ScriptedAPI.run { _, request in
      guard request.path.hasSuffix("/events") else {
        let look = looks.withLock { looks in
          looks += 1
          return looks
        }
        // It is there at each first look.
        return look % 2 == 1
          ? .json(Documents.task(id, "running", sequence: 2)) : .problem(404, "there is no such task")
      }
      return HTTPResponse(
        headers: ["Content-Type": "text/event-stream"],
        body: .stream { stream in
          _ = stream.send(Array("event: ready\ndata: {}\n\n".utf8))
          while stream.send(Array("event: ping\ndata: {}\n\n".utf8)) {
            try? await Task.sleep(for: .milliseconds(20))
          }
        })
    } _: { client, _ in
      let error = await #expect(throws: FleetError.self) { try await client.end(of: id) }
      #expect(error?.code == .notFound && error?.message == "the task was removed")
      for try await _ in client.events(of: id) { Issue.record("there is none") }
    }
  }

  @Test("the connection ends when nobody reads the stream any more") func end() async throws {
    let id = UUID()
    let ended = Lock(false)
    try await ScriptedAPI.run { _, _ in
      HTTPResponse(
        headers: ["Content-Type": "text/event-stream"],
        body: .stream { stream in
          while stream.send(Array(Documents.event(id, "started", "running", sequence: 2, cursor: "c").utf8)) {
            try? await Task.sleep(for: .milliseconds(5))
          }
          ended.withLock { $0 = true }
        })
    } _: { client, _ in
      for try await _ in client.events(of: id) { break }
      let deadline = ContinuousClock.now + .seconds(60)
      while !ended.withLock({ $0 }), .now < deadline { try await Task.sleep(for: .milliseconds(5)) }
      #expect(ended.withLock { $0 })
    }
  }
}
