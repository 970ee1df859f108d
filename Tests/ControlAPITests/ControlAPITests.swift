import ControlAPI
import HTTPServer
import ReelhaulClient
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

@Suite struct ControlAPITests {
  @Test("a task is submitted, listed, shown and told to stop") func life() async throws {
    try await APIBench.run { bench in
      let id = UniqueID.make()
      let answer = await bench.ask("POST", "/v1/tasks", #"{"id": "\#(id)", "kind": "noop", "source": "noop://a/"}"#)
      #expect(answer.status == 202 && answer.headers["location"] == "/v1/tasks/\(id)" && answer.body.contains("\(id)"))
      let list = await bench.ask("GET", "/v1/tasks?state=queued&queue=default&limit=1")
      #expect(
        list.status == 200 && list.body.contains("\(id)")
          && list.body.hasSuffix(#""hasMore":false,"next":null,"searchedTo":null}"#))
      let none = await bench.ask("GET", "/v1/tasks?state=failed").body
      #expect(none == #"{"tasks":[],"hasMore":false,"next":null,"searchedTo":null}"#)
      let shown = await bench.ask("GET", "/v1/tasks/\(id)")
      #expect(shown.status == 200 && shown.body.contains(#""waits":"for a worker: no worker is live"#))
      #expect(await bench.ask("POST", "/v1/tasks/\(id)/actions/prioritize", #"{"priority": 7}"#).status == 202)
      #expect(await bench.ask("POST", "/v1/tasks/\(id)/actions/cancel", "{}").status == 202)
      let document = try #require(try await bench.store.task(id))
      #expect(document.state == .canceled && document.spec.priority == 7)
      let canceled = await bench.ask("GET", "/v1/tasks/\(id)")
      #expect(canceled.body.contains("tries again") && canceled.body.contains(#""advice":"#))
    }
  }

  @Test("the same idempotency key is the same task") func idempotency() async throws {
    try await APIBench.run { bench in
      let body = #"{"kind": "noop", "source": "noop://a/"}"#
      let first = await bench.ask("POST", "/v1/tasks", body, ["Idempotency-Key": "a"])
      let again = await bench.ask("POST", "/v1/tasks", body, ["Idempotency-Key": "a"])
      let other = await bench.ask("POST", "/v1/tasks", body, ["Idempotency-Key": "b"])
      #expect(first.status == 202 && first.body == again.body && first.body != other.body)
      let counts = try await bench.store.counts()
      #expect(counts == [.queued: 2])
      #expect(await bench.ask("POST", "/v1/tasks", body, ["Idempotency-Key": ""]).status == 422)
      let type = "application/x-ndjson"
      let many = await bench.ask("POST", "/v1/tasks", "\(body)\n\(body)", ["Idempotency-Key": "a"], type: type)
      let repeated = await bench.ask("POST", "/v1/tasks", "\(body)\n\(body)", ["Idempotency-Key": "a"], type: type)
      #expect(many.status == 202 && many.body == repeated.body)
      let all = try await bench.store.counts()
      #expect(all == [.queued: 4])
      let tooMany = String(repeating: "{}\n", count: 10_001)
      #expect(await bench.ask("POST", "/v1/tasks", tooMany, type: type).status == 413)
    }
  }

  @Test("a key is refused with another body at another server, too") func keyElsewhere() async throws {
    try await APIBench.run { bench in
      let other = APIBench(store: bench.store, pool: bench.pool, loop: bench.loop)
      let (body, wrong) = (#"{"kind": "noop", "source": "noop://a/"}"#, #"{"kind": "noop", "source": "noop://b/"}"#)
      for type in ["application/json", "application/x-ndjson"] {
        let key = ["Idempotency-Key": type]
        let first = await bench.ask("POST", "/v1/tasks", body, key, type: type)
        let refused = await other.ask("POST", "/v1/tasks?wait=applied", wrong, key, type: type)
        #expect(refused.status == 422 && refused.body.contains("idempotency_key_reused"), "\(type) \(refused)")
        let again = await other.ask("POST", "/v1/tasks", body, key, type: type)
        #expect(first.status == 202 && again.status == 202 && again.body == first.body, "\(type)")
      }
      #expect(other.sent.withLock { $0.count } == 2)
    }
  }

  @Test("of two bodies with one key at two servers at once, the one that is not applied is refused")
  func keyAtOnce() async throws {
    try await APIBench.run { bench in
      let late = APIBench(
        store: bench.store, pool: bench.pool, loop: bench.loop,
        ahead: { commands in
          commands.compactMap { command -> Command? in
            guard case .submit(var spec) = command else { return nil }
            spec.source = "noop://b/"
            return .submit(spec)
          }
        })
      let body = #"{"kind": "noop", "source": "noop://a/"}"#
      let one = await late.ask("POST", "/v1/tasks?wait=applied", body, ["Idempotency-Key": "a"])
      #expect(one.status == 422 && one.body.contains("idempotency_key_reused"), "\(one)")
      let many = await late.ask(
        "POST", "/v1/tasks?wait=applied", body, ["Idempotency-Key": "b"], type: "application/x-ndjson")
      #expect(many.body.contains("used with another body") && !many.body.contains("applied"), "\(many)")
    }
  }

  @Test("a line with an id of its own that is taken has its result, and its key is not blamed") func takenLine()
    async throws
  {
    try await APIBench.run { bench in
      let id = UniqueID.make()
      #expect(await bench.submit(id) == 202)
      let lines = #"""
        {"kind": "noop", "source": "noop://other/", "id": "\#(id)"}
        {"kind": "noop", "source": "noop://new/"}
        """#
      let answer = await bench.ask(
        "POST", "/v1/tasks?wait=applied", lines, ["Idempotency-Key": "a"], type: "application/x-ndjson")
      #expect(answer.status == 200 && answer.body.contains("duplicate") && answer.body.contains("applied"), "\(answer)")
    }
  }

  @Test("lines of which none is right leave their key free") func keyOfNothing() async throws {
    try await APIBench.run { bench in
      let (key, type) = (["Idempotency-Key": "a"], "application/x-ndjson")
      let wrong = await bench.ask("POST", "/v1/tasks", #"{"kind": "noop", "sorce": "noop://a/"}"#, key, type: type)
      let right = await bench.ask("POST", "/v1/tasks", #"{"kind": "noop", "source": "noop://a/"}"#, key, type: type)
      #expect(wrong.status == 422 && right.status == 202)
    }
  }

  @Test("of many lines, the right ones are submitted and the wrong ones are named") func many() async throws {
    try await APIBench.run { bench in
      let lines = """
        {"kind": "noop", "source": "noop://a/"}

        {"kind": "noop", "sorce": "x"}
        {"kind": "noop", "source": "noop://b/"}
        """
      let answer = await bench.ask("POST", "/v1/tasks", lines, type: "application/x-ndjson; charset=utf-8")
      #expect(answer.status == 202)
      #expect(answer.body.contains(#""line":1,"id""#) && answer.body.contains(#""line":4,"id""#))
      #expect(answer.body.contains(#""line":3,"code":"invalid_field","error":"sorce"#))
      #expect(bench.sent.withLock { $0.count } == 2)
      let none = await bench.ask("POST", "/v1/tasks", "nonsense\n", type: "application/x-ndjson")
      #expect(none.status == 422)
      let far = await bench.ask(
        "POST", "/v1/tasks", String(repeating: "\n", count: 300_000) + "{}\n\n", type: "application/x-ndjson")
      #expect(far.status == 422 && far.body.contains(#""line":300001,"#), "\(far)")
    }
  }

  @Test("wrong requests get their status and a reason, and send nothing") func wrong() async throws {
    try await APIBench.run { bench in
      let id = UniqueID.make()
      #expect(await bench.submit(id) == 202)
      for (status, method, target, body) in [
        (404, "GET", "/v2", ""), (404, "GET", "/v1/tasks/\(UniqueID.make())", ""), (400, "GET", "/v1/tasks/7", ""),
        (400, "GET", "/v1/tasks?limit=0", ""), (400, "GET", "/v1/tasks?limit=x", ""),
        (400, "GET", "/v1/tasks?state=happy", ""), (400, "GET", "/v1/tasks?stat=failed", ""),
        (400, "GET", "/v1/tasks?limit=1&limit=2", ""), (400, "GET", "/v1/tasks?queue=%f", ""),
        (400, "GET", "/v1/tasks/%2F", ""), (405, "DELETE", "/v1/tasks", ""), (405, "POST", "/v1/overview", "{}"),
        (422, "POST", "/v1/tasks", "{"), (422, "POST", "/v1/tasks", #"{"kind": "noop", "source": "x", "more": 1}"#),
        (422, "POST", "/v1/tasks", #"{"command": "cancel", "id": "\#(UniqueID.make())", "task": "\#(id)"}"#),
        (404, "POST", "/v1/tasks/\(id)/actions/dance", "{}"), (422, "POST", "/v1/tasks/\(id)/actions/prioritize", "{}"),
        (422, "POST", "/v1/tasks/\(id)/actions/prioritize", #"{"priority": 1001}"#),
        (422, "POST", "/v1/tasks/\(id)/actions/pause", "no JSON"),
        (404, "POST", "/v1/tasks/\(UniqueID.make())/actions/pause", "{}"),
      ] {
        let answer = await bench.ask(method, target, body)
        #expect(answer.status == status, "\(method) \(target) \(body): \(answer)")
        #expect(answer.headers["content-type"] == "application/problem+json" && answer.body.contains(#""detail":""#))
      }
      #expect(await bench.ask("DELETE", "/v1/tasks").headers["allow"] == "GET, HEAD, OPTIONS, POST")
      #expect(await bench.ask("POST", "/v1/tasks", "a=b", type: "application/x-www-form-urlencoded").status == 415)
      #expect(bench.sent.withLock { $0.count } == 1)
    }
  }

  @Test("the same mistake in a body has the same code, whatever the path") func codes() async throws {
    try await APIBench.run { bench in
      let id = UniqueID.make()
      #expect(await bench.submit(id) == 202)
      for (method, target) in [
        ("POST", "/v1/tasks"), ("POST", "/v1/tasks/\(id)/actions/prioritize"), ("POST", "/v1/operations"),
        ("POST", "/v1/session"), ("PUT", "/v1/limits/total"), ("PUT", "/v1/queues/films/notify"),
      ] {
        for (body, code) in [
          ("no JSON", "malformed_json"), ("[]", "malformed_json"), (#"{"what": 1}"#, "invalid_field"),
          ("{}", "missing_field"),
        ] {
          let answer = await bench.ask(method, target, body)
          #expect(answer.status == 422 && answer.body.contains(#""code":"\#(code)""#), "\(target) \(body): \(answer)")
        }
      }
      for (target, body) in [
        ("tasks/\(id)/actions/prioritize", #"{"priority": 1001}"#),
        ("tasks/\(id)/actions/pause", #"{"priority": "1"}"#),
        ("operations", #"{"action": "prioritize", "priority": 1001, "filter": {}}"#), ("session", #"{"token": 1}"#),
        ("operations", #"{"action": "dance", "filter": {}}"#),
      ] {
        let answer = await bench.ask("POST", "/v1/\(target)", body)
        #expect(answer.body.contains(#""code":"invalid_field""#), "\(target) \(body): \(answer)")
      }
    }
  }

  @Test("pages of other sites can neither read nor send, whatever name leads here") func strangers() async throws {
    try await APIBench.run { bench in
      #expect(await bench.ask("GET", "/v1/tasks", "", ["Host": "evil.example"]).status == 403)
      #expect(await bench.ask("GET", "/v1/tasks", "", ["Host": "127.0.0.1.evil.example:8080"]).status == 403)
      for host in ["localhost:1", "127.0.0.1", "[::1]:8080", "LOCALHOST"] {
        #expect(await bench.ask("GET", "/v1/tasks", "", ["Host": host]).status == 200)
      }
      let body = #"{"kind": "noop", "source": "noop://a/"}"#
      for headers in [
        ["Origin": "http://evil.example"], ["Origin": "null"], ["Origin": "http://127.0.0.1:9999"],
        ["Sec-Fetch-Site": "cross-site"], ["Sec-Fetch-Site": "same-site"],
      ] {
        #expect(await bench.ask("POST", "/v1/tasks", body, headers).status == 403, "\(headers)")
      }
      #expect(bench.sent.withLock { $0.isEmpty })
      let own = ["Origin": "http://127.0.0.1:8080", "Sec-Fetch-Site": "same-origin"]
      #expect(await bench.ask("POST", "/v1/tasks", body, own).status == 202)
    }
  }

  @Test("what a client has already is not sent again") func etags() async throws {
    try await APIBench.run { bench in
      let first = await bench.ask("GET", "/v1/tasks")
      let tag = try #require(first.headers["etag"])
      let again = await bench.ask("GET", "/v1/tasks", "", ["If-None-Match": tag])
      #expect(again.status == 304 && again.body.isEmpty)
      #expect(await bench.submit(.make()) == 202)
      #expect(await bench.ask("GET", "/v1/tasks", "", ["If-None-Match": tag]).status == 200)
    }
  }

  @Test("the description names every route, and the assets are there with a strict policy") func description()
    async throws
  {
    try await APIBench.run { bench in
      let text = await bench.ask("GET", "/v1/openapi.json").body
      for path in [
        "/v1/tasks", "/v1/tasks/{id}", "/v1/tasks/{id}/actions/{action}", "/v1/stream", "/v1/overview", "/metrics",
      ] {
        #expect(text.contains("\"\(path)\":"), "\(path)")
      }
      for member in [
        #""headers":{"type":["object","null"],"additionalProperties":{"type":["string","null"]}"#,
        #""kind":{"type":["string","null"],"pattern":"^[A-Za-z0-9._-]+$","minLength":1,"maxLength":32"#,
      ] {
        #expect(text.contains(member), "\(member)")
      }
      let parts = text.split(separator: #""operationId":""#).dropFirst()
      let operations = Dictionary(uniqueKeysWithValues: parts.map { ($0.prefix { $0 != "\"" }, $0) })
      for (name, field) in [
        ("post_v1_tasks", "Idempotency-Key"), ("post_v1_operations", "Idempotency-Key"),
        ("get_v1_events", "Last-Event-ID"),
      ] {
        #expect(operations["\(name)"]?.contains(#""name":"\#(field)","in":"header""#) == true, "\(name)")
      }
      // Lines of which none is right are told one by one; what is no line is a problem.
      let refused = try #require(operations["post_v1_tasks"]?.split(separator: #""422":"#).last)
      let types = #/"application/json":.*SubmittedLines.*"application/problem\+json":/#
      #expect(refused.prefix { $0 != "4" }.firstMatch(of: types) != nil, "\(refused)")
      for (name, isTagged) in [("get_v1_events", false), ("get_v1_stream", false), ("get_v1_tasks", true)] {
        let operation = operations["\(name)"]
        #expect(operation?.contains("\"304\"") == isTagged && operation?.contains("\"ETag\"") == isTagged, "\(name)")
      }
      let page = await bench.ask("GET", "/?state=failed&task=\(UniqueID.make())")
      #expect(page.status == 200 && page.body.hasPrefix("<!doctype html>"))
      #expect(page.headers["content-security-policy"]?.contains("script-src 'self'") == true)
      #expect(!page.body.contains("<script>") && !page.body.contains("style="))
      // Everything that the page and its modules name is served, and nothing else is asked for.
      var (wanted, served) = (Set(page.body.matches(of: /"(assets\/[^"]+)"/).map { "/\($0.1)" }), Set<String>())
      #expect(wanted.contains("/assets/main.js") && wanted.contains("/assets/style.css"))
      while let path = wanted.subtracting(served).first {
        let asset = await bench.ask("GET", path)
        #expect(asset.status == 200, "\(path)")
        #expect(!asset.body.contains("https://") || !path.hasSuffix(".css"), "\(path)")
        served.insert(path)
        wanted.formUnion(asset.body.matches(of: /"\.\/([a-z]+\.js)"/).map { "/assets/\($0.1)" })
      }
      #expect(served.count > 20, "\(served)")
    }
  }

  @Test("metrics are in Prometheus' format; a body that is too long or not wanted is refused before it comes")
  func others() async throws {
    try await APIBench.run { bench in
      #expect(await bench.submit(.make()) == 202)
      let metrics = await bench.ask("GET", "/metrics").body
      #expect(
        metrics.contains("# TYPE reelhaul_tasks gauge\n")
          && metrics.contains("reelhaul_tasks{state=\"queued\",queue=\"default\",kind=\"noop\"} 1\n"), "\(metrics)")
      #expect(metrics.contains("reelhaul_build_info{version=\"1.2.3\",schema=\"\(Schema.version)\"} 1\n"))
      let head = HTTPRequest(method: "POST", target: "/v1/overview", headers: ["Host": "localhost"])
      guard case .refused(let response) = await bench.api.admit(head) else {
        Issue.record("it is admitted")
        return
      }
      #expect(response.status == 405)
    }
  }

  @Test("a stream tells the state at once, and each change") func stream() async throws {
    try await APIBench.run { bench in
      let server = HTTPServer(loop: bench.loop, settings: .init(), handler: bench.api)
      let port = try await server.start()
      let client = try RawClient(port: port)
      client.send("GET /v1/stream?limit=5 HTTP/1.1\r\nHost: localhost\r\n\r\n")
      let first = client.receive { $0.contains("event: tasks\n") && $0.hasSuffix("\n\n") }
      #expect(first.contains("text/event-stream") && first.contains("event: overview\ndata: {\"counts\":"))
      let id = UniqueID.make()
      #expect(await bench.submit(id) == 202)
      #expect(client.receive { $0.contains("\(id)") }.contains("event: tasks\ndata: {\"tasks\":[{\"id\":\"\(id)\""))
      await server.stop(within: .zero)
    }
  }

  @Test("two streams with different filters at once each get what they ask for") func streams() async throws {
    try await APIBench.run { bench in
      let id = UniqueID.make()
      #expect(await bench.submit(id, #", "labels": {"a": "b&text=x"}"#) == 202)
      let server = HTTPServer(loop: bench.loop, settings: .init(), handler: bench.api)
      let port = try await server.start()
      // As texts side by side, both are one.
      let queries = ["label=a%3Db%26text%3Dx", "label=a%3Db&text=x"]
      let clients = try queries.map { _ in try RawClient(port: port) }
      for (client, query) in zip(clients, queries) {
        client.send("GET /v1/stream?\(query) HTTP/1.1\r\nHost: localhost\r\n\r\n")
      }
      let answers = clients.map { $0.receive { $0.contains("event: tasks\n") && $0.hasSuffix("\n\n") } }
      #expect(answers.map { $0.contains("\(id)") } == [true, false])
      await server.stop(within: .zero)
    }
  }

  @Test("a slow reader of a stream gets a large state to its end, and one that reads nothing is dropped")
  func slowReader() async throws {
    var settings = ControlAPI.Settings()
    settings.ping = .seconds(1)
    try await APIBench.run(settings) { bench in
      let label = String(repeating: "a", count: 200)
      let labels = (0..<10).map { #""\#($0)": "\#(label)""# }.joined(separator: ", ")
      let line = #"{"kind": "noop", "source": "noop://a/", "labels": {\#(labels)}}"#
      let lines = Array(repeating: line, count: 1000).joined(separator: "\n")
      #expect(await bench.ask("POST", "/v1/tasks", lines, type: "application/x-ndjson").status == 202)
      var limits = HTTPServer.Settings()
      limits.write = .seconds(6)
      let server = HTTPServer(loop: bench.loop, settings: limits, handler: bench.api)
      let port = try await server.start()
      let (slow, still) = (try RawClient(port: port, receiveBuffer: 64 << 10), try RawClient(port: port))
      for client in [slow, still] { client.send("GET /v1/stream?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n") }
      var total = 0
      // It takes some times as long as it is quiet between two pings.
      while total < 2 << 20, case let count = slow.read(atMost: 128 << 10), count > 0 {
        total += count
        try await Task.sleep(for: .milliseconds(700))
      }
      #expect(total >= 2 << 20)
      try await eventually("the still one is dropped") {
        try await bench.loop.task { server.connectionCount }.value == 1
      }
      #expect(slow.receive { $0.contains("event: ping") }.contains("event: ping"))
      withExtendedLifetime((slow, still)) {}
      await server.stop(within: .zero)
    }
  }

  @Test("the server ends although the store does not answer those who wait for one read together") func hangingEnd()
    async throws
  {
    var settings = ControlAPI.Settings()
    settings.requiresTokens = true
    try await APIBench.run(settings) { bench in
      let (id, token) = (try await bench.add(to: "default"), try await bench.token(.read))
      let server = HTTPServer(loop: bench.loop, settings: .init(), handler: bench.api)
      let port = try await server.start()
      let isTold = Lock(false)
      let driver = OperationDriver(
        store: bench.store, send: { _ in }, loop: bench.loop, onOutage: { _ in isTold.withLock { $0 = true } })
      let targets = ["/v1/tasks/\(id)", "/v1/overview", "/v1/counts", "/v1/stream", "/v1/session"]
      // All but the last are known, and wait for what they ask for.
      let known = try await bench.token(.read)
      #expect(await bench.ask(as: known, "GET", "/v1/session").status == 200)
      try await bench.pool.transaction { transaction in
        _ = try await transaction.query("LOCK TABLE task, api_token, operation IN ACCESS EXCLUSIVE MODE")
        let operations = bench.loop.task { await driver.run() }
        let clients = try targets.map { _ in try RawClient(port: port) }
        for (client, target) in zip(clients, targets) {
          client.send(
            "GET \(target) HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(target == targets.last ? token : known)\r\n\r\n"
          )
        }
        try await Task.sleep(for: .milliseconds(500))
        let hasEnded = Lock(false)
        let ending = Task {
          operations.cancel()
          _ = await operations.result
          await server.stop(within: .zero)
          hasEnded.withLock { $0 = true }
        }
        try await eventually("it has ended", within: .seconds(20)) { hasEnded.withLock { $0 } }
        await ending.value
      }
      #expect(!isTold.withLock { $0 })
    }
  }

  @Test("a stream tells that the store does not answer, and the state once it does") func hangingStore() async throws {
    try await APIBench.run { bench in
      let server = HTTPServer(loop: bench.loop, settings: .init(), handler: bench.api)
      let port = try await server.start()
      let client = try RawClient(port: port)
      client.send("GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
      _ = client.receive { $0.contains("event: tasks\n") && $0.hasSuffix("\n\n") }
      try await bench.pool.transaction { transaction in
        _ = try await transaction.query("LOCK TABLE task IN ACCESS EXCLUSIVE MODE")
        #expect(client.receive { $0.contains("event: trouble\n") }.contains("event: trouble\n"))
      }
      #expect(client.receive { $0.contains("event: tasks\n") }.contains("event: tasks\n"))
      await server.stop(within: .zero)
    }
  }
}
