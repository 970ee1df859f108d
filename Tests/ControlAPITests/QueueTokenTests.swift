import HTTPServer
import ReelhaulClient
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

@testable import ControlAPI

/// What tokens that are limited to queues see and reach.
@Suite struct QueueTokenTests {
  private static var required: ControlAPI.Settings {
    var settings = ControlAPI.Settings()
    settings.requiresTokens = true
    return settings
  }

  @Test("an operation of a token for one queue reaches no task of another, and is seen by no other")
  func operations() async throws {
    try await APIBench.run(Self.required) { bench in
      let (mine, other) = (try await bench.add(to: "mine"), try await bench.add(to: "other"))
      let (limited, all) = (try await bench.token(.write, queues: ["mine"]), try await bench.token(.admin))
      func begin(_ token: String, _ body: String) async throws -> UniqueID {
        let answer = await bench.ask(as: token, "POST", "/v1/operations", body)
        let location = try #require(answer.headers["location"], "\(answer)")
        return try #require(UniqueID(String(location.suffix(36))))
      }
      let named = try await begin(limited, #"{"action": "cancel", "ids": ["\#(mine)", "\#(other)"]}"#)
      let found = try await begin(limited, #"{"action": "cancel", "filter": {}}"#)
      let theirs = try await begin(all, #"{"action": "pause", "filter": {"queue": ["none"]}}"#)
      let driver = OperationDriver(
        store: bench.store, send: { [store = bench.store] in _ = try await store.apply($0) }, loop: bench.loop)
      for id in [named, found, theirs] {
        try await eventually("it ends") {
          _ = try await driver.turn()
          return try await bench.store.operation(id)?.finishedAt != nil
        }
      }
      #expect(try await bench.store.operation(named)?.progress.refusals == ["unknown_task": 1])
      let states = try await bench.store.states(of: [mine, other])
      #expect(states == [mine: .canceled, other: .queued])
      for (id, status) in [(named, 200), (found, 200), (theirs, 404)] {
        #expect(await bench.ask(as: limited, "GET", "/v1/operations/\(id)").status == status)
        #expect(await bench.ask(as: all, "GET", "/v1/operations/\(id)").status == 200)
      }
      let list = await bench.ask(as: limited, "GET", "/v1/operations").body
      #expect(list.contains("\(named)") && !list.contains("\(theirs)"))
    }
  }

  @Test("counts, queues, failures and the overview tell a token of its queues alone, whatever was read for others")
  func reads() async throws {
    try await APIBench.run(Self.required) { bench in
      for queue in ["mine", "other", "other"] { _ = try await bench.add(to: queue) }
      let worker = try await bench.store.register(
        WorkerRegistration(boot: .make(), host: "a", pid: 1, leaseSeconds: 3600, kinds: [.noop], volumes: [:]))
      for (call, queue) in [(1, "failed-mine"), (2, "failed-other")] as [(Int64, String)] {
        _ = try await bench.add(to: queue, #", "priority": 9"#)
        let claim = try #require(try await bench.store.claim(worker, limit: 1, call: call).first)
        let failure = TaskFailure(code: .digestMismatch, message: "it broke", class: .fail)
        let outcome = Settlement.Outcome.failed(failure, retryIn: nil)
        _ = try await bench.store.settle([Settlement(taskID: claim.spec.id, epoch: claim.epoch, outcome: outcome)])
      }
      let limited = try await bench.token(.read, queues: ["mine", "failed-mine"])
      let all = try await bench.token(.read)
      for target in ["/v1/overview", "/v1/counts", "/v1/counts?by=queue", "/v1/queues", "/v1/failures"] {
        let everything = await bench.ask(as: all, "GET", target)
        let answer = await bench.ask(as: limited, "GET", target)
        #expect(everything.status == 200 && answer.status == 200, "\(target): \(answer)")
        #expect(everything.body != answer.body && !answer.body.contains("other"), "\(target): \(answer.body)")
      }
      #expect(await bench.ask(as: limited, "GET", "/v1/overview").body.contains(#""queued":1"#))
      #expect(
        await bench.ask(as: limited, "GET", "/v1/failures?queue=failed-other").body.contains("digest_mismatch") == false
      )
    }
  }

  @Test("a stream tells a token of its queues alone, also while that of another is open") func streams() async throws {
    try await APIBench.run(Self.required) { bench in
      let (mine, other) = (try await bench.add(to: "mine"), try await bench.add(to: "other"))
      let tokens = [try await bench.token(.read), try await bench.token(.read, queues: ["mine"])]
      let server = HTTPServer(loop: bench.loop, settings: .init(), handler: bench.api)
      let port = try await server.start()
      let texts = try tokens.map { token in
        let client = try RawClient(port: port)
        client.send("GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(token)\r\n\r\n")
        return client.receive {
          $0.contains("event: tasks\n") && $0.contains("event: overview\n") && $0.hasSuffix("\n\n")
        }
      }
      #expect(texts.allSatisfy { $0.contains("\(mine)") })
      #expect(texts.map { $0.contains("\(other)") } == [true, false])
      #expect(texts.map { $0.contains(#""queued":2"#) } == [true, false])
      await server.stop(within: .zero)
    }
  }

  @Test("events tell a token of its queues alone") func events() async throws {
    try await EventBench.run { bench in
      try await bench.serving(tokens: ["films"]) { port, token in
        let client = try EventClient(port, headers: "Authorization: Bearer \(token)\r\n")
        client.receive { $0.last?.name == "ready" }
        let (other, mine) = (UniqueID.make(), UniqueID.make())
        try await bench.publish(other, 1...3, queue: "other")
        try await bench.publish(mine, 1...1, queue: "films")
        client.receive(mine, 1)
        try await bench.publish(mine, 2...2, queue: "films")
        client.receive(mine, 2)
        #expect(client.events.filter { $0.name == "message" }.map(\.key) == ["\(mine) 1", "\(mine) 2"])
      }
    }
  }
}
