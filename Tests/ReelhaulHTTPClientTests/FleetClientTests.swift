import Foundation
import HTTPServer
import ReelhaulCodec
import ReelhaulSystem
import Testing

@testable import ReelhaulHTTPClient

@Suite struct FleetClientTests {
  @Test("a submit whose answer is lost is repeated with the same key, and is below the server's prefix")
  func submit() async throws {
    let task = NewTask(kind: "download", source: "https://a.example/b", destination: "storage://default/b")
    try await ScriptedAPI.run { number, _ in
      number < 3 ? .problem(503, "Kafka is away") : .json(#"{"id":"\#(task.id)"}"#, status: 202)
    } _: { client, api in
      #expect(try await client.submit(task) == task.id)
      let requests = api.requests.withLock { $0 }
      #expect(requests.count == 3)
      #expect(Set(requests.map { $0.headers["idempotency-key"] }).count == 1)
      #expect(
        requests.allSatisfy { $0.target == "/prefix/v1/tasks" && $0.headers["authorization"] == "Bearer rhl_test" })
      let body = try JSONDecoder().decode(JSONValue.self, from: Data(requests[2].body))
      #expect(body["source"] == "https://a.example/b" && body["queue"] == nil)
    }
  }

  @Test("of many tasks each has its result, in order, over several requests") func many() async throws {
    let tasks = (0..<501).map { NewTask(kind: $0 == 1 ? "wrong" : "noop") }
    try await ScriptedAPI.run { _, request in
      let lines = request.body.split(separator: UInt8(ascii: "\n")).enumerated().map { index, line in
        let task = try? JSONDecoder().decode(JSONValue.self, from: Data(line))
        return task?["kind"] == "wrong"
          ? #"{"line":\#(index + 1),"code":"invalid_field","error":"it is wrong"}"#
          : #"{"line":\#(index + 1),"id":"\#(task?["id"]?.string ?? "")"}"#
      }
      return .json(#"{"results":[\#(lines.joined(separator: ","))]}"#, status: 202)
    } _: { client, api in
      let results = try await client.submit(tasks)
      #expect(api.requests.withLock { $0.count } == 2 && results.count == tasks.count)
      for (index, result) in results.enumerated() {
        switch result {
        case .success(let id): #expect(id == tasks[index].id && index != 1)
        case .failure(let error): #expect(index == 1 && error.code.rawValue == "invalid_field" && !error.isRetryable)
        }
      }
    }
  }

  @Test("of tasks that are all wrong each has its reason") func allWrong() async throws {
    try await ScriptedAPI.run { _, _ in
      .json(#"{"results":[{"line":1,"error":"one"},{"line":2,"error":"two"}]}"#, status: 422)
    } _: { client, api in
      let results = try await client.submit([NewTask(kind: "wrong"), NewTask(kind: "wrong")])
      let messages = results.map { if case .failure(let error) = $0 { error.message } else { "" } }
      #expect(messages == ["one", "two"])
      // Corrected tasks may come under the ids of wrong ones.
      #expect(api.requests.withLock { $0[0].headers["idempotency-key"] } == nil)
    }
  }

  @Test("of very long tasks each has its result, whatever cannot be sent and whichever request fails")
  func manyLong() async throws {
    var tasks = (0..<200).map { _ in NewTask(kind: "noop") }
    for index in tasks.indices { tasks[index].parameters = .string(String(repeating: "a", count: 60_000)) }
    tasks[3].parameters = .number(.nan)
    tasks[5].parameters = .string(String(repeating: "a", count: 4 << 20))
    let (wrong, all) = ([3, 5], tasks)
    try await ScriptedAPI.run { number, request in
      guard number < 3 else { return .problem(401, "the token is revoked") }
      let ids = request.body.split(separator: UInt8(ascii: "\n")).map { line in
        (try? JSONDecoder().decode(JSONValue.self, from: Data(line)))?["id"]?.string ?? ""
      }
      let lines = ids.enumerated().map { #"{"line":\#($0 + 1),"id":"\#($1)"}"# }
      return .json(#"{"results":[\#(lines.joined(separator: ","))]}"#, status: 202)
    } _: { client, api in
      let results = try await client.submit(all)
      let requests = api.requests.withLock { $0 }
      #expect(requests.count == 3 && requests.allSatisfy { $0.body.count <= 4 << 20 })
      let sent = requests.prefix(2).map { $0.body.count { $0 == UInt8(ascii: "\n") } + 1 }.reduce(0, +)
      #expect(results.count == all.count && sent > 100)
      for (index, result) in results.enumerated() {
        switch result {
        case .success(let id): #expect(id == all[index].id && index < sent + wrong.count && !wrong.contains(index))
        case .failure(let error):
          #expect(error.code == (wrong.contains(index) ? .invalidTask : .unauthorized))
          #expect(wrong.contains(index) || index >= sent + wrong.count)
        }
      }
    }
  }

  @Test("numbers of parameters and of outputs are what they were, however long") func longNumbers() async throws {
    struct Numbers: Codable, Equatable {
      var most = UInt64.max
      var price = Decimal(string: "12345678901234567890.123456789") ?? 0
      var ratio = 0.1 + 0.2
      var large = 1e300
      var least = Int64.min
    }
    let task = try NewTask(kind: "own", parameters: Numbers())
    let json = try FleetClient.encode(task.parameters)
    #expect(try JSONDecoder().decode(Numbers.self, from: json) == Numbers())
    let text = String(decoding: json, as: UTF8.self)
    for number in ["18446744073709551615", "12345678901234567890.123456789", "0.30000000000000004"] {
      #expect(text.contains(number), "\(text)")
    }
    let document = Documents.task(UUID(), "succeeded", sequence: 3)
      .replacing(#"{"bytes":9007199254740993}"#, with: text)
    let read = try FleetClient.decoder().decode(FleetTask.self, from: Data(document.utf8))
    #expect(try read.output(as: Numbers.self) == Numbers())
    #expect(read.output?["ratio"] == .number(0.1 + 0.2) && read.output?["least"]?.integer == .min)
  }

  @Test("a time keeps its milliseconds", arguments: [1_767_323_045.123, 1_767_323_045, 1_767_323_045.999_6, -0.123])
  func times(seconds: Double) throws {
    let read = try #require(FleetTime.date(FleetTime.text(Date(timeIntervalSince1970: seconds))))
    #expect((read.timeIntervalSince1970 * 1000).rounded() == (seconds * 1000).rounded())
  }

  @Test("a call in a task that is canceled already ends", .timeLimit(.minutes(1))) func canceledBefore() async throws {
    try await ScriptedAPI.run { _, _ in
      .json("{}")
    } _: { client, _ in
      for _ in 0..<500 {
        let call = Task {
          withUnsafeCurrentTask { $0?.cancel() }
          try await client.cancel(UUID())
        }
        await #expect(throws: CancellationError.self) { try await call.value }
      }
    }
  }

  @Test("no redirect is followed, so that no other address gets the token, and no command is taken for done")
  func redirects() async throws {
    let id = UUID()
    try await ScriptedAPI.run { _, request in
      guard !request.target.hasSuffix("/login") else { return .json("{}") }
      return HTTPResponse(302, headers: ["Location": "/login"], type: "text/html", Array("<html>".utf8))
    } _: { client, api in
      let calls: [@Sendable () async throws -> Void] = [
        { try await client.cancel(id) }, { _ = try await client.task(id) },
        { for try await _ in client.events(of: id) {} }, { _ = try await client.submit(NewTask(kind: "noop")) },
      ]
      for call in calls {
        let error = await #expect(throws: FleetError.self) { try await call() }
        #expect(error?.status == 302 && error?.message.contains("/login") == true, "\(String(describing: error))")
      }
      #expect(api.requests.withLock { $0.map(\.target) }.allSatisfy { !$0.hasSuffix("/login") })
    }
  }

  @Test(
    "a proxy that asks for a password is an error with its status, and no call waits for ever", .timeLimit(.minutes(1)))
  func passwords() async throws {
    let id = UUID()
    for scheme in ["Basic realm=\"a\"", "Digest realm=\"a\", nonce=\"b\"", "Bearer", "Negotiate"] {
      try await ScriptedAPI.run { _, _ in
        HTTPResponse(401, headers: ["WWW-Authenticate": scheme], type: "text/html", Array("<html>".utf8))
      } _: { client, api in
        let calls: [@Sendable () async throws -> Void] = [
          { try await client.cancel(id) }, { _ = try await client.task(id) },
          { for try await _ in client.events(of: id) {} },
        ]
        for call in calls {
          let error = await #expect(throws: FleetError.self) { try await call() }
          #expect(error?.status == 401 && error?.code == .unauthorized, "\(scheme): \(String(describing: error))")
        }
        #expect(api.requests.withLock { $0.count } == calls.count, "\(scheme)")
      }
    }
  }

  @Test("a command waits until it is applied, and throws if it is refused or late; a repetition has the same key")
  func commands() async throws {
    let id = UUID()
    try await ScriptedAPI.run { number, request in
      switch (number, request.target) {
      case (1, _): .problem(502, "the proxy lost the server")
      case (2, _): .problem(504, "Kafka did not confirm it")
      case (_, let target) where target.contains("/retry?"): .problem(409, "it has succeeded", code: "refused")
      case (_, let target) where target.contains("/cancel?"): .json(#"{"action":"cancel"}"#, status: 202)
      default: .json(#"{"action":"pause","outcome":"applied"}"#)
      }
    } _: { client, api in
      try await client.pause(id)
      let refused = await #expect(throws: FleetError.self) { try await client.retry(id) }
      #expect(refused?.code == .refused && refused?.message == "it has succeeded" && refused?.isRetryable == false)
      let late = await #expect(throws: FleetError.self) { try await client.cancel(id) }
      #expect(late?.code == .notApplied && late?.isRetryable == false)
      let requests = api.requests.withLock { $0 }
      #expect(requests.allSatisfy { $0.target.hasSuffix("?wait=applied&timeout=30") })
      let keys = requests.map { $0.headers["idempotency-key"] }
      #expect(keys.count == 5 && Set(keys[..<3]).count == 1 && Set(keys).count == 3 && !keys.contains(nil))
      try await client.remove(id)
      try await client.remove(id, files: true)
      try await client.resume(id)
      try await client.prioritize(id, 7)
      let more = api.requests.withLock { Array($0[5...]) }
      let actions = "/prefix/v1/tasks/\(id.uuidString.lowercased())/actions/"
      #expect(more.map { String($0.path) } == ["remove", "remove", "resume", "prioritize"].map { actions + $0 })
      let bodies = try more.map { try JSONDecoder().decode(JSONValue.self, from: Data($0.body)) }
      // Files are deleted only for those who ask for it.
      #expect(bodies[0]["files"] == .bool(false) && bodies[1]["files"] == .bool(true))
      #expect(bodies[3]["priority"] == .integer(7))
    }
  }

  @Test("problems are typed errors")
  func errors() async throws {
    let id = UUID()
    try await ScriptedAPI.run { _, request in
      switch request.target {
      case let target where target.contains("/cancel?"):
        return .problem(409, "it has ended", code: "illegal_transition")
      default: return HTTPResponse(404, headers: ["X-Request-Id": "r1"], type: "text/html", Array("<html>".utf8))
      }
    } _: { client, _ in
      let refused = await #expect(throws: FleetError.self) { try await client.cancel(id) }
      #expect(refused?.code.rawValue == "illegal_transition" && refused?.message == "it has ended")
      let missing = await #expect(throws: FleetError.self) { try await client.task(id) }
      #expect(missing?.code == .notFound && missing?.requestID == "r1")
    }
    let nowhere = FleetClient(url: try #require(URL(string: "http://127.0.0.1:1")))
    let unreachable = await #expect(throws: FleetError.self) { try await nowhere.pause(id) }
    #expect(unreachable?.code == .unreachable)
  }

  @Test("all tasks that match come page by page, with numbers and times as they are") func pages() async throws {
    let ids = (0..<3).map { _ in UUID() }
    try await ScriptedAPI.run { number, _ in
      let tasks = (number == 1 ? ids[..<2] : ids[2...]).map { Documents.task($0, "failed", sequence: 3) }
      return .json(
        #"{"tasks":[\#(tasks.joined(separator: ","))],"hasMore":false,"next":\#(number == 1 ? "\"a+b\"" : "null")}"#)
    } _: { client, api in
      var query = TaskQuery()
      (query.states, query.text) = ([.failed, .canceled], "a&b=c d")
      (query.queues, query.kinds, query.hosts, query.labels) = (["q", "r"], ["k"], ["h"], ["l=1", "m"])
      let (after, before) = (Date(timeIntervalSince1970: 1_767_323_045), Date(timeIntervalSince1970: 1_767_409_445))
      (query.createdAfter, query.createdBefore, query.oldestFirst, query.limit) = (after, before, true, 7)
      var found: [FleetTask] = []
      for try await task in client.tasks(query) { found.append(task) }
      #expect(found.map(\.id) == ids)
      #expect(found[0].output?["bytes"]?.integer == 9_007_199_254_740_993)
      #expect(found[0].createdAt.timeIntervalSince1970 > 1_767_323_045.678)
      let asked = api.requests.withLock { $0.map { (try? $0.query) ?? [] } }
      #expect(
        asked[0].map { "\($0.name): \($0.value)" } == [
          "state: failed,canceled", "queue: q,r", "kind: k", "host: h", "label: l=1,m", "text: a&b=c d",
          "after: \(FleetTime.text(after))", "before: \(FleetTime.text(before))", "sort: createdAt", "limit: 7",
        ])
      #expect(asked[1].contains { $0 == ("cursor", "a+b") })
      // A server would take it for two labels.
      query.labels = ["place=Paris, France"]
      let error = await #expect(throws: FleetError.self) { try await client.page(query) }
      #expect(error?.code == .invalidTask && api.requests.withLock { $0.count } == 2)
    }
  }
}
