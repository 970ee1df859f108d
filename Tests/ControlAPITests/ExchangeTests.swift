import ControlAPI
import Glibc
import HTTPServer
import ReelhaulKafka
import ReelhaulPostgres
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore
import TestKit
import Testing

@testable import ReelhaulClient

/// What all answers have in common, and what a request can ask for beside its subject.
@Suite struct ExchangeTests {
  private static let task = #"{"kind": "noop", "source": "noop://a/"}"#

  @Test("a request has an id, its own if it is plain, which its problem names, too") func ids() async throws {
    try await APIBench.run { bench in
      let own = await bench.ask("GET", "/v1/tasks/\(UniqueID.make())", "", ["X-Request-Id": "a-1.b/c=+:_"])
      #expect(
        own.headers["x-request-id"] == "a-1.b/c=+:_" && own.body.contains(#""requestId":"a-1.b\/c=+:_""#)
          || own.body.contains(#""requestId":"a-1.b/c=+:_""#))
      #expect(own.body.contains(#""type":"urn:reelhaul:problem:not_found","code":"not_found""#))
      for wrong in ["a b", "a\"b", "", String(repeating: "a", count: 129), "ä"] {
        let id = await bench.ask("GET", "/healthz", "", ["X-Request-Id": wrong]).headers["x-request-id"]
        #expect(id.flatMap { UniqueID($0) } != nil, "\(wrong)")
      }
    }
  }

  @Test("a database that takes no writes is read, and a change says that it cannot be stored")
  func readOnly() async throws {
    var settings = ControlAPI.Settings()
    settings.requiresTokens = true
    try await APIBench.run(settings) { bench in
      let token = try await bench.token(.admin, name: "ops")
      _ = try await bench.pool.query(
        PostgresStatement(
          """
          DO $$ BEGIN
            EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database());
          END $$
          """, writes: true))
      await bench.pool.reconnect()
      let refused = await bench.ask(as: token, "PUT", "/v1/limits/total", #"{"limit": 4}"#)
      #expect(refused.status == 503 && refused.body.contains("the change cannot be stored"), "\(refused)")
      #expect(await bench.ask(as: token, "GET", "/v1/limits").status == 200)
    }
  }

  @Test("a request whose body is refused is in the log, and a server that refuses very many tells some of them")
  func refusedBodies() async throws {
    try await APIBench.run { bench in
      let directory = try TemporaryDirectory(prefix: "refused")
      let file = try FileDescriptor.open("\(directory.path)/log", O_RDWR | O_CREAT)
      let log = Logger(level: .info, format: .json, descriptor: file.raw)
      let api = ControlAPI(store: bench.store, send: { _ in }, loop: bench.loop, version: "1", log: log)
      var settings = HTTPServer.Settings()
      settings.bodies = 1000
      let server = HTTPServer(loop: bench.loop, settings: settings, handler: api)
      let port = try await server.start()
      func send(_ type: String, _ length: Int) throws -> String {
        let client = try RawClient(port: port)
        client.send(
          "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: \(type)\r\nContent-Length: \(length)\r\n\r\n")
        client.send([UInt8](repeating: 32, count: min(length, 2000)))
        return client.receive()
      }
      #expect(try send("text/plain", 2).hasPrefix("HTTP/1.1 415 "))
      #expect(try send("application/json", 5 << 20).hasPrefix("HTTP/1.1 413 "))
      for _ in 0..<50 { #expect(try send("application/json", 2000).hasPrefix("HTTP/1.1 503 ")) }
      await server.stop(within: .zero)
      log.close()
      let lines = try String(decoding: file.contents(), as: UTF8.self).split(separator: "\n")
      #expect(lines.allSatisfy { $0.contains(#""method":"POST","path":"/v1/tasks""#) && $0.contains("127.0.0.1") })
      let counts = [415, 413, 503].map { status in lines.count { $0.contains(#""status":\#(status),"#) } }
      #expect(
        counts[0] == 1 && counts[1] == 1 && 10..<40 ~= counts[2] && counts.reduce(0, +) == lines.count, "\(lines)")
    }
  }

  @Test("long texts are compressed for those who read gzip, with a tag of their own") func compressed() async throws {
    try await APIBench.run { bench in
      let plain = await bench.ask("GET", "/assets/main.js")
      let small = await bench.ask("GET", "/assets/main.js", "", ["Accept-Encoding": "gzip, br"])
      #expect(plain.headers["content-encoding"] == nil && small.headers["content-encoding"] == "gzip")
      #expect(plain.headers["vary"] == "Accept-Encoding" && small.headers["vary"] == "Accept-Encoding")
      #expect(small.body.utf8.count < plain.body.utf8.count && plain.headers["etag"] != small.headers["etag"])
      for tag in [plain.headers["etag"], small.headers["etag"]] {
        for coding in ["gzip", "identity"] {
          let known = ["If-None-Match": tag ?? "", "Accept-Encoding": coding]
          #expect(await bench.ask("GET", "/assets/main.js", "", known).status == 304)
        }
      }
      #expect(await bench.ask("GET", "/healthz", "", ["Accept-Encoding": "gzip"]).headers["content-encoding"] == nil)
    }
  }

  @Test("an action with the tag of a task is sent only while the task is as it was") func preconditions() async throws {
    try await APIBench.run { bench in
      let id = try await bench.add(to: "default")
      let tag = try #require(await bench.ask("GET", "/v1/tasks/\(id)").headers["etag"])
      let fields = ["If-Match": tag, "Idempotency-Key": "pause"]
      let pause = await bench.ask("POST", "/v1/tasks/\(id)/actions/pause", "{}", fields)
      let again = await bench.ask("POST", "/v1/tasks/\(id)/actions/pause", "{}", fields)
      #expect(again.status == 202 && again.body == pause.body, "what has changed the task is this command")
      #expect(pause.status == 202)
      let cancel = await bench.ask("POST", "/v1/tasks/\(id)/actions/cancel", "{}", ["If-Match": tag])
      #expect(cancel.status == 412 && cancel.body.contains("precondition_failed"))
      #expect(await bench.ask("GET", "/v1/tasks/\(id)", "", ["If-None-Match": tag]).status == 200)
      #expect(bench.sent.withLock { $0.count } == 2)
      let key = ["Idempotency-Key": "remove"]
      let remove = await bench.ask("POST", "/v1/tasks/\(id)/actions/remove?wait=applied", "{}", key)
      let repeated = await bench.ask("POST", "/v1/tasks/\(id)/actions/remove?wait=applied", "{}", key)
      #expect(remove.status == 200 && repeated.status == 200 && repeated.body == remove.body)
      #expect(await bench.ask("POST", "/v1/tasks/\(id)/actions/remove", "{}", ["Idempotency-Key": "b"]).status == 404)
    }
  }

  @Test("commands that Kafka does not confirm may have arrived: the answer does not say that nothing has happened")
  func unconfirmed() async throws {
    try await APIBench.run { bench in
      let id = try await bench.add(to: "default")
      let other = APIBench(
        store: bench.store, pool: bench.pool, loop: bench.loop,
        ahead: { _ in throw ReelhaulClientError(KafkaError(code: .timedOut, message: "nobody answers")) })
      let own = #"{"id": "\#(id)", "kind": "noop", "source": "noop://a/"}"#
      for (path, body, isSafe) in [
        ("/v1/tasks/\(id)/actions/pause", "{}", false), ("/v1/tasks", Self.task, false), ("/v1/tasks", own, true),
      ] {
        for key in [nil, "k\(body.count)"] {
          let answer = await other.ask("POST", path, body, key.map { ["Idempotency-Key": $0] } ?? [:])
          // Whoever sends it again without an id does it twice.
          #expect(answer.status == 504, "\(answer)")
          #expect((answer.headers["retry-after"] != nil) == (isSafe || key != nil), "\(answer)")
          #expect(answer.body.contains(#""code":"unavailable""#), "\(answer)")
          #expect(answer.body.contains("did not confirm"), "\(answer)")
          let sent = try #require(other.sent.withLock { $0.last })
          #expect(answer.body.contains(#""id":"\#(sent.taskID)""#), "\(answer)")
          if case .control(let control) = sent { #expect(answer.body.contains(#""command":"\#(control.id)""#)) }
        }
      }
    }
  }

  /// Kafka's answers to lines, by their index.
  private static func failing(_ causes: [Int: KafkaError.Code]) -> @Sendable ([Command]) throws -> [Command] {
    { _ in
      let errors = causes.mapValues { KafkaError(code: $0, message: "no") }
      guard let first = errors.min(by: { $0.key < $1.key }) else { return [] }
      throw ReelhaulClientError(first.value, causes: errors)
    }
  }

  @Test("each line has its result although Kafka does not confirm, or refuses, some of them") func failingLines()
    async throws
  {
    try await APIBench.run { bench in
      let id = try await bench.add(to: "default")
      let own = UniqueID.make()
      let pause = UniqueID.make()
      let lines = [
        #"{"id": "\#(own)", "kind": "noop", "source": "noop://a/"}"#, "nonsense",
        #"{"command": "pause", "id": "\#(pause)", "taskId": "\#(id)"}"#, Self.task,
      ]
      func ask(
        _ causes: [Int: KafkaError.Code], _ lines: some Sequence<String>, _ headers: [String: String] = [:]
      ) async -> (status: Int, results: [Substring], isRepeatable: Bool, body: String) {
        let other = APIBench(store: bench.store, pool: bench.pool, loop: bench.loop, ahead: Self.failing(causes))
        let body = lines.joined(separator: "\n")
        let answer = await other.ask("POST", "/v1/tasks", body, headers, type: "application/x-ndjson")
        let results = answer.body.split(separator: #"{"line":"#).dropFirst()
        return (answer.status, Array(results), answer.headers["retry-after"] != nil, answer.body)
      }
      // The wrong line is not sent.
      let open = await ask([1: .timedOut], lines)
      #expect(open.status == 504 && !open.isRepeatable && open.results.count == 4, "\(open)")
      #expect(open.body.contains(#""status":504,"detail":"Kafka did not confirm"#), "\(open)")
      #expect(open.results[0].hasPrefix(#"1,"id":"\#(own)"}"#) && open.results[1].contains(#""code":"malformed_json""#))
      #expect(open.results[2].hasPrefix(#"3,"id":"\#(id)","command":"\#(pause)","code":"unavailable","error":""#))
      #expect(!open.results[3].contains("error") && open.results[3].contains(#""id":""#))
      // Every line has an id of its own, or one of the key.
      #expect(await ask([1: .timedOut], lines.prefix(3)).isRepeatable)
      #expect(await ask([1: .timedOut], lines, ["Idempotency-Key": "a"]).isRepeatable)
      let large = await ask([0: .messageTooLarge], lines)
      #expect(large.status == 202 && large.results[0].contains(#""code":"too_large""#), "\(large)")
      #expect(!large.results[2].contains("error") && !large.results[3].contains("error"), "\(large)")
      #expect(await ask([0: .messageTooLarge], lines.prefix(1)).status == 422)
      let both = await ask([0: .messageTooLarge, 2: .timedOut], lines, ["Idempotency-Key": "b"])
      #expect(both.status == 504 && both.results[0].contains("too_large") && both.results[3].contains("unavailable"))
      let refused = await ask([0: .forbidden, 1: .forbidden, 2: .forbidden], lines, ["Idempotency-Key": "c"])
      #expect(refused.status == 503 && !refused.isRepeatable, "\(refused)")
    }
  }

  @Test("what Kafka refuses is not asked for again") func refused() async throws {
    try await APIBench.run { bench in
      let id = try await bench.add(to: "default")
      for (code, status, word) in [
        (KafkaError.Code.messageTooLarge, 413, "too_large"), (.forbidden, 503, "unavailable"),
      ] {
        let other = APIBench(store: bench.store, pool: bench.pool, loop: bench.loop, ahead: Self.failing([0: code]))
        for (path, body) in [("/v1/tasks/\(id)/actions/pause", "{}"), ("/v1/tasks", Self.task)] {
          let answer = await other.ask("POST", path, body, ["Idempotency-Key": "\(status)"])
          #expect(answer.status == status && answer.headers["retry-after"] == nil, "\(answer)")
          #expect(answer.body.contains(#""code":"\#(word)""#), "\(answer)")
        }
      }
    }
  }

  @Test("an action that is sent again with its key is one command") func keysOfActions() async throws {
    try await APIBench.run { bench in
      let id = try await bench.add(to: "default")
      func prioritize(_ priority: Int, _ key: String) async -> Int {
        let path = "/v1/tasks/\(id)/actions/prioritize?wait=applied"
        return await bench.ask("POST", path, #"{"priority": \#(priority)}"#, ["Idempotency-Key": key]).status
      }
      for (priority, key) in [(1, "a"), (1, "a"), (2, "a"), (1, "b"), (1, "a")] {
        #expect(await prioritize(priority, key) == 200)
      }
      let commands = bench.sent.withLock { $0.map(\.id) }
      #expect(Set(commands).count == 3 && commands[0] == commands[1] && commands[0] == commands[4])
      let task = try await bench.store.task(id)
      #expect(task?.sequence == 4 && task?.spec.priority == 1, "\(String(describing: task))")
      #expect(await prioritize(1, "a b") == 422)
    }
  }

  @Test("who waits is told what became of a submit and of a command, and why it was refused") func waits() async throws
  {
    try await APIBench.run { bench in
      let id = UniqueID.make()
      let body = #"{"id": "\#(id)", "kind": "noop", "source": "noop://a/"}"#
      let made = await bench.ask("POST", "/v1/tasks?wait=applied&timeout=20", body)
      #expect(made.status == 200 && made.body == #"{"id":"\#(id)","outcome":"applied"}"#, "\(made)")
      #expect(await bench.ask("POST", "/v1/tasks?wait=applied", body).body.contains("duplicate"))
      let paused = await bench.ask("POST", "/v1/tasks/\(id)/actions/pause?wait=applied", "{}")
      #expect(paused.status == 200 && paused.body.contains(#""action":"pause","outcome":"applied"}"#), "\(paused)")
      let refused = await bench.ask("POST", "/v1/tasks/\(id)/actions/retry?wait=applied", "{}")
      #expect(refused.status == 409 && refused.body.contains(#""code":"refused""#), "\(refused)")
      #expect(refused.body.contains(#""reason":"illegal_transition""#))
      let lines = "\(body)\n{\"command\": \"retry\", \"taskId\": \"\(id)\"}\n\(Self.task)"
      let many = await bench.ask("POST", "/v1/tasks?wait=applied", lines, type: "application/x-ndjson")
      #expect(many.status == 200 && many.body.contains(#""line":1,"id":"\#(id)","outcome":"duplicate""#), "\(many)")
      #expect(many.body.contains(#""line":2,"code":"#) && many.body.contains(#""outcome":"applied"}]}"#))
      for query in ["wait=soon", "wait=applied&timeout=61", "wait=applied&timeout=0"] {
        #expect(await bench.ask("POST", "/v1/tasks?\(query)", body).status == 400, "\(query)")
      }
    }
  }

  @Test("who waits is told of each submit whose id another task has, and why a line was refused")
  func othersOfOneID() async throws {
    try await APIBench.run { bench in
      let (id, type) = (UniqueID.make(), "application/x-ndjson")
      func line(_ label: String) -> String {
        #"{"id": "\#(id)", "kind": "noop", "source": "noop://a/", "labels": {"n": "\#(label)"}}"#
      }
      let three = await bench.ask(
        "POST", "/v1/tasks?wait=applied", [line("1"), line("2"), line("1")].joined(separator: "\n"), type: type)
      #expect(
        three.status == 200
          && three.body == #"""
            {"results":[{"line":1,"id":"\#(id)","outcome":"applied"},\#
            {"line":2,"id":"\#(id)","outcome":"duplicate","differs":true},\#
            {"line":3,"id":"\#(id)","outcome":"duplicate"}]}
            """#,
        "\(three)")
      let one = await bench.ask("POST", "/v1/tasks?wait=applied", line("3"))
      #expect(one.status == 200 && one.body == #"{"id":"\#(id)","outcome":"duplicate","differs":true}"#, "\(one)")

      let (gone, unknown) = (try await bench.add(to: "default"), UniqueID.make())
      #expect(await bench.ask("POST", "/v1/tasks/\(gone)/actions/remove", "{}").status == 202)
      let lines = #"""
        {"id": "\#(gone)", "kind": "noop", "source": "noop://a/"}
        {"command": "retry", "taskId": "\#(id)"}
        {"command": "retry", "taskId": "\#(unknown)"}
        """#
      let refused = await bench.ask("POST", "/v1/tasks?wait=applied", lines, type: type)
      #expect(refused.body.contains(#""line":1,"code":"task_removed","error":"#), "\(refused)")
      #expect(refused.body.contains(#""line":2,"code":"refused","reason":"illegal_transition","error":"#), "\(refused)")
      #expect(refused.body.contains(#""line":3,"code":"refused","reason":"unknown_task","error":"#), "\(refused)")
    }
  }

  @Test("the log names whose token is for less than a request needs") func refusedScopes() async throws {
    try await APIBench.run { bench in
      let directory = try TemporaryDirectory(prefix: "scopes")
      let file = try FileDescriptor.open("\(directory.path)/log", O_RDWR | O_CREAT)
      let log = Logger(level: .info, format: .json, descriptor: file.raw)
      var settings = ControlAPI.Settings()
      settings.requiresTokens = true
      let api = ControlAPI(
        store: bench.store, send: { _ in }, loop: bench.loop, version: "1", settings: settings, log: log)
      let token = try await bench.token(.read, name: "reader")
      var request = HTTPRequest(
        method: "POST", target: "/v1/tasks",
        headers: ["Host": "localhost", "Content-Type": "application/json", "Authorization": "Bearer \(token)"])
      guard case .refused(let response) = await api.admit(request) else {
        Issue.record("it is admitted")
        return
      }
      #expect(response.status == 403)
      request.body = Array(Self.task.utf8)
      let answer = await api.answer(request)
      #expect(answer.status == 403)
      log.close()
      let lines = try String(decoding: file.contents(), as: UTF8.self).split(separator: "\n")
      #expect(lines.count == 2 && lines.allSatisfy { $0.contains(#""actor":"reader""#) }, "\(lines)")
    }
  }

  @Test("who waits longer than is allowed gets 202: it is sent, and its end is open") func timeouts() async throws {
    let loop = EventLoop(name: "deaf")
    defer { loop.shutdown() }
    try await APIBench.run { bench in
      // Nobody applies what this one sends.
      let deaf = ControlAPI(store: bench.store, send: { _ in }, loop: loop, version: "1")
      let id = try await bench.add(to: "default")
      for (target, body) in [("/v1/tasks", Self.task), ("/v1/tasks/\(id)/actions/cancel", "{}")] {
        let request = HTTPRequest(
          method: "POST", target: "\(target)?wait=applied&timeout=1",
          headers: ["Host": "localhost", "Content-Type": "application/json"], body: Array(body.utf8))
        let response = await deaf.answer(request)
        #expect(response.status == 202)
      }
      // Nor does anybody know after this.
      let blinding = ControlAPI(
        store: bench.store, send: { _ in _ = try await bench.pool.query("alter table task rename to gone") },
        loop: loop, version: "1")
      let request = HTTPRequest(
        method: "POST", target: "/v1/tasks?wait=applied&timeout=1",
        headers: ["Host": "localhost", "Content-Type": "application/json"], body: Array(Self.task.utf8))
      let response = await blinding.answer(request)
      #expect(response.status == 202)
    }
  }

  @Test("who waits for a submit with the id of a removed task is told so at once") func removedIDs() async throws {
    try await APIBench.run { bench in
      let id = try await bench.add(to: "default")
      #expect(await bench.ask("POST", "/v1/tasks/\(id)/actions/remove", "{}").status == 202)
      let body = #"{"id": "\#(id)", "kind": "noop", "source": "noop://a/"}"#
      #expect(await bench.ask("POST", "/v1/tasks", body).status == 202)
      let one = await bench.ask("POST", "/v1/tasks?wait=applied", body)
      #expect(one.status == 409 && one.body.contains(#""code":"task_removed""#) && one.body.contains("\(id)"), "\(one)")
      let lines = "\(body)\n\(Self.task)"
      let many = await bench.ask("POST", "/v1/tasks?wait=applied", lines, type: "application/x-ndjson")
      #expect(many.status == 200 && many.body.contains("the task \(id) was removed"), "\(many)")
      #expect(many.body.contains(#""outcome":"applied"}]}"#), "\(many)")
    }
  }

  @Test("a key that comes with another body is refused, also by another server") func keys() async throws {
    try await APIBench.run { bench in
      let other = #"{"kind": "noop", "source": "noop://b/"}"#
      #expect(await bench.ask("POST", "/v1/tasks", Self.task, ["Idempotency-Key": "k"]).status == 202)
      let reused = await bench.ask("POST", "/v1/tasks", other, ["Idempotency-Key": "k"])
      #expect(reused.status == 422 && reused.body.contains(#""code":"idempotency_key_reused""#))
      let second = APIBench(store: bench.store, pool: bench.pool, loop: bench.loop, settings: .init())
      #expect(await second.ask("POST", "/v1/tasks", other, ["Idempotency-Key": "k"]).status == 422)
      #expect(await second.ask("POST", "/v1/tasks", Self.task, ["Idempotency-Key": "k"]).status == 202)
      #expect(await second.ask("POST", "/v1/tasks", Self.task, ["Idempotency-Key": "l"]).status == 202)
      let type = "application/x-ndjson"
      #expect(await bench.ask("POST", "/v1/tasks", other, ["Idempotency-Key": "m"], type: type).status == 202)
      #expect(await bench.ask("POST", "/v1/tasks", Self.task, ["Idempotency-Key": "m"], type: type).status == 422)

      // A command of a line is the same one only with the same line.
      let id = UniqueID.make()
      #expect(await bench.submit(id) == 202)
      func command(_ name: String) async throws -> TaskState? {
        let line = #"{"command": "\#(name)", "taskId": "\#(id)"}"#
        let server = APIBench(store: bench.store, pool: bench.pool, loop: bench.loop, settings: .init())
        let answer = await server.ask("POST", "/v1/tasks", line, ["Idempotency-Key": "n"], type: type)
        #expect(answer.status == 202)
        return try await bench.store.task(id)?.state
      }
      let states = [try await command("pause"), try await command("resume"), try await command("pause")]
      #expect(states == [.paused, .queued, .queued], "the last one was applied before")
    }
  }

  @Test("below a prefix the page, its data and its places are there, and the probes everywhere") func prefix()
    async throws
  {
    var settings = ControlAPI.Settings()
    settings.prefix = "/films/reelhaul"
    try await APIBench.run(settings) { bench in
      let bare = await bench.ask("GET", "/films/reelhaul")
      #expect(bare.status == 308 && bare.headers["location"] == "/films/reelhaul/")
      for target in ["/", "/assets/main.js", "/v1/tasks", "/healthz"] {
        #expect(await bench.ask("GET", "/films/reelhaul\(target)").status == 200, "\(target)")
      }
      #expect(await bench.ask("GET", "/healthz").status == 200)
      #expect(await bench.ask("GET", "/films/v1/tasks").status == 404)
      let made = await bench.ask("POST", "/films/reelhaul/v1/tasks", Self.task)
      #expect(made.headers["location"]?.hasPrefix("/films/reelhaul/v1/tasks/") == true)
      #expect(await bench.ask("GET", "/openapi.json").body.contains(#""servers":[{"url":"/films/reelhaul"}]"#))
      let page = await bench.ask("GET", "/films/reelhaul/").body
      #expect(!page.contains("=\"/"), "the page names nothing from the root")
    }
  }

  @Test("pages of other origins may call it only if they are named, and never with a cookie") func cors() async throws {
    var settings = ControlAPI.Settings()
    settings.corsOrigins = ["https://tools.example"]
    settings.requiresTokens = true
    try await APIBench.run(settings) { bench in
      let token = try await bench.token(.write)
      let (good, evil) = ("https://tools.example", "https://evil.example")
      for (origin, isAllowed) in [(good, true), (evil, false)] {
        let asked = await bench.ask("OPTIONS", "/v1/tasks", "", ["Origin": origin])
        #expect(asked.status == 204 && asked.headers["allow"] == "GET, HEAD, OPTIONS, POST")
        #expect((asked.headers["access-control-allow-origin"] == origin) == isAllowed)
        #expect((asked.headers["access-control-allow-headers"] != nil) == isAllowed)
        let headers = ["Origin": origin, "Authorization": "Bearer \(token)", "Sec-Fetch-Site": "cross-site"]
        let sent = await bench.ask("POST", "/v1/tasks", Self.task, headers)
        #expect(sent.status == (isAllowed ? 202 : 403))
        #expect((sent.headers["access-control-allow-origin"] == origin) == isAllowed)
        #expect(sent.headers["access-control-allow-credentials"] == nil)
      }
      let signIn = await bench.ask("POST", "/v1/session", #"{"token": "\#(token)"}"#)
      let cookie = String((signIn.headers["set-cookie"] ?? "").prefix { $0 != ";" })
      #expect(await bench.ask("POST", "/v1/tasks", Self.task, ["Origin": good, "Cookie": cookie]).status == 401)
      #expect(await bench.ask("GET", "/v1/tasks").headers["vary"]?.contains("Origin") == true)
    }
  }

  @Test("many reads of tasks at once are few statements, and each gets its own") func batches() async throws {
    try await APIBench.run { bench in
      let ids = (0..<40).map { _ in UniqueID.make() }
      for id in ids { #expect(await bench.submit(id) == 202) }
      await withTaskGroup(of: Void.self) { group in
        for id in ids + ids + [.make(), .make()] {
          group.addTask {
            let answer = await bench.ask("GET", "/v1/tasks/\(id)")
            #expect(ids.contains(id) ? answer.body.hasPrefix(#"{"id":"\#(id)""#) : answer.status == 404)
          }
        }
      }
    }
  }
}

extension KafkaError.Code {
  /// Of a topic to which the client may not write.
  fileprivate static let forbidden = Self(rawValue: 29)
}
