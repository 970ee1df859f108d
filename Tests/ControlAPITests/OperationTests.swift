import HTTPServer
import ReelhaulClient
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

@testable import ControlAPI

/// Commands to everything that matches, on a real PostgreSQL.
@Suite struct OperationTests {
  private func driver(
    _ bench: APIBench, only: UniqueID? = nil, _ send: ControlAPI.Send? = nil
  ) -> OperationDriver {
    OperationDriver(
      store: bench.store,
      send: send ?? { [store = bench.store, sent = bench.sent] commands in
        sent.withLock { $0 += commands }
        _ = try await store.apply(commands)
      }, loop: bench.loop, only: only)
  }

  private func submit(_ count: Int, queue: String = "default", host: String = "a", _ bench: APIBench) async throws
    -> [UniqueID]
  {
    let specs = (0..<count).map { _ in
      var spec = TaskSpec(id: .make(), kind: .noop, source: "https://\(host)/x", destination: nil)
      spec.queue = queue
      return spec
    }
    _ = try await bench.store.apply(specs.map(Command.submit))
    return specs.map(\.id)
  }

  private func begin(_ body: String, _ bench: APIBench) async throws -> UniqueID {
    let answer = await bench.ask("POST", "/v1/operations", body)
    #expect(answer.status == 202, "\(answer)")
    let location = try #require(answer.headers["location"])
    return try #require(UniqueID(String(location.suffix(36))))
  }

  private func finish(_ id: UniqueID, _ driver: OperationDriver, _ bench: APIBench) async throws -> TaskOperation {
    for _ in 0..<1000 {
      _ = try await driver.turn()
      if let operation = try await bench.store.operation(id), operation.finishedAt != nil { return operation }
    }
    throw HTTPError(500, "it does not end")
  }

  @Test("the revocation of a token cancels the operations that it began, and no others") func revoked() async throws {
    var settings = ControlAPI.Settings()
    settings.requiresTokens = true
    try await APIBench.run(settings) { bench in
      _ = try await submit(3, bench)
      var operations: [UniqueID] = []
      for name in ["one", "other"] {
        let token = try await bench.token(.write, name: name)
        let answer = await bench.ask(as: token, "POST", "/v1/operations", #"{"action": "pause", "filter": {}}"#)
        let location = try #require(answer.headers["location"], "\(answer)")
        operations.append(try #require(UniqueID(String(location.suffix(36)))))
      }
      #expect(try await bench.store.revokeToken("one") != nil)
      let driver = driver(bench)
      let canceled = try await finish(operations[0], driver, bench)
      #expect(canceled.state == .canceled && canceled.progress.sent == 0)
      #expect(try await finish(operations[1], driver, bench).state == .done)
    }
  }

  @Test("an operation reaches every task that matches and was there before, and no other one") func reach() async throws
  {
    try await APIBench.run { bench in
      let theirs = try await submit(1200, queue: "archive", bench)
      let others = try await submit(3, bench)
      let id = try await begin(#"{"action": "pause", "filter": {"queue": ["archive"]}}"#, bench)
      let late = try await submit(2, queue: "archive", bench)
      let ended = try await finish(id, driver(bench), bench)
      #expect(ended.state == .done && ended.error == nil && ended.actor == "local")
      #expect(ended.progress.matched == 1200 && ended.progress.sent == 1200 && ended.progress.applied == 1200)
      #expect(ended.progress.refused == 0 && ended.progress.refusals.isEmpty)
      let states = try await bench.store.states(of: theirs + others + late)
      #expect(theirs.allSatisfy { states[$0] == .paused } && (others + late).allSatisfy { states[$0] == .queued })
      #expect(try await bench.store.history(of: theirs[0]).map(\.actor) == ["local"])
      let shown = await bench.ask("GET", "/v1/operations/\(id)")
      #expect(shown.status == 200 && shown.body.contains(#""state":"done","matched":1200,"sent":1200,"applied":1200"#))
      #expect(await bench.ask("GET", "/v1/operations").body.contains("\(id)"))
      #expect(try await bench.pool.query("select count(*) from operation_batch")[0].int64(0) == 0)
    }
  }

  @Test("tasks keep their order in the queue, also if the operation began in an earlier version") func order()
    async throws
  {
    try await APIBench.run { bench in
      var ids: [UniqueID] = []
      for _ in 0..<20 { ids += try await submit(1, bench) }
      for action in ["pause", "resume"] {
        let operation = try await begin(#"{"action": "\#(action)", "filter": {}}"#, bench)
        #expect(try await finish(operation, driver(bench), bench).progress.applied == 20)
      }
      func controlled() -> [UniqueID] {
        bench.sent.withLock { $0 }.compactMap { if case .control(let its) = $0 { its.taskID } else { nil } }
      }
      #expect(controlled() == ids.reversed() + ids)
      let worker = try await bench.store.register(
        WorkerRegistration(boot: .random(), host: "a", pid: 1, leaseSeconds: 60, kinds: [.noop], volumes: [:]))
      #expect(try await bench.store.claim(worker, limit: 3, call: 1).map(\.spec.id) == Array(ids.prefix(3)))
      let before = try await begin(#"{"action": "prioritize", "priority": 3, "filter": {}}"#, bench)
      _ = try await bench.pool.query(PostgresStatement("update operation set filter = '{}' where id = '\(before)'"))
      #expect(try await finish(before, driver(bench), bench).progress.applied == 20)
      #expect(controlled() == ids.reversed() + ids + ids.reversed())
    }
  }

  @Test("a dry run tells how many and which, and sends nothing") func dryRun() async throws {
    try await APIBench.run { bench in
      let ids = try await submit(12, queue: "archive", bench)
      _ = try await submit(3, bench)
      for id in ids.prefix(2) { #expect(await bench.ask("POST", "/v1/tasks/\(id)/actions/pause", "{}").status == 202) }
      let sent = bench.sent.withLock { $0.count }
      let body = #"{"action": "resume", "filter": {"queue": ["archive"], "state": ["paused", "queued"]}}"#
      let answer = await bench.ask("POST", "/v1/operations?dry_run=true", body)
      #expect(
        answer.status == 200 && answer.body.hasPrefix(#"{"count":2,"isAtLeast":false,"impossible":10,"examples":[{"#))
      let all = await bench.ask("POST", "/v1/operations?dry_run=true", #"{"action": "cancel", "filter": {}}"#)
      #expect(all.body.hasPrefix(#"{"count":15,"#))
      let told = try #require(all.body.split(separator: #""at":""#).last?.prefix { $0 != "\"" })
      _ = try await submit(2, bench)
      let same = await bench.ask(
        "POST", "/v1/operations?dry_run=true", #"{"action": "cancel", "filter": {"before": "\#(told)"}}"#)
      #expect(same.body.hasPrefix(#"{"count":15,"#), "what was submitted later stays out")
      #expect(bench.sent.withLock { $0.count } == sent)
      let kept = try await bench.store.operations(limit: 10, within: nil)
      #expect(kept.isEmpty)
    }
  }

  @Test("filters by state, kind, host, label, text and time find what they name") func filters() async throws {
    try await APIBench.run { bench in
      let plain = try await submit(2, host: "one.example", bench)
      let failing = try await submit(1, host: "two.example", bench)
      var labeled = TaskSpec(id: .make(), kind: .noop, source: "https://three.example/Film_A.mp4", destination: nil)
      labeled.labels = ["show": "a", "season": "1"]
      _ = try await bench.store.apply([.submit(labeled)])
      #expect(await bench.ask("POST", "/v1/tasks/\(failing[0])/actions/pause", "{}").status == 202)
      for (filter, count) in [
        (#"{"host": ["one.example"]}"#, 2), (#"{"host": ["one.example", "two.example"]}"#, 3),
        (#"{"host": ["ONE.Example"]}"#, 2),
        (#"{"state": ["paused"]}"#, 1), (#"{"state": ["queued"]}"#, 3), (#"{"kind": ["noop"]}"#, 4),
        (#"{"kind": ["download"]}"#, 0), (#"{"label": ["show"]}"#, 1), (#"{"label": ["show=a", "season=1"]}"#, 1),
        (#"{"label": ["show=b"]}"#, 0), (#"{"label": ["show=b", "show"]}"#, 0),
        (#"{"label": ["show", "show=a"]}"#, 1), (#"{"text": "film_a"}"#, 1), (#"{"text": "%"}"#, 0),
        (#"{"text": "\#(plain[0])"}"#, 1), (#"{"after": "2001-01-01T00:00:00Z"}"#, 4),
        (#"{"before": "2001-01-01T00:00:00Z"}"#, 0), (#"{"queue": ["none"]}"#, 0),
      ] {
        let answer = await bench.ask(
          "POST", "/v1/operations?dry_run=true", #"{"action": "cancel", "filter": \#(filter)}"#)
        #expect(answer.body.hasPrefix(#"{"count":\#(count),"#), "\(filter): \(answer)")
      }
    }
  }

  @Test("a filter that asks for two values of one label is refused, and one from before reaches no task")
  func twoValues() async throws {
    try await APIBench.run { bench in
      var labeled = TaskSpec(id: .make(), kind: .noop, source: "https://a.example/x", destination: nil)
      labeled.labels = ["show": "b"]
      _ = try await bench.store.apply([.submit(labeled)])
      for labels in [#"["show=a", "show=b"]"#, #"["=b"]"#] {
        let body = #"{"action": "remove", "filter": {"label": \#(labels)}}"#
        #expect(await bench.ask("POST", "/v1/operations", body).status == 422)
      }
      var filter = OperationFilter()
      filter.labels = ["show=a", "show=b"]
      let former = TaskOperation(
        id: .make(), action: .remove(files: false), selection: .filter(filter),
        createdAt: Timestamp(microseconds: Clocks.realtimeMicroseconds()))
      let created = try await bench.store.createOperation(former)
      let ended = try await finish(created.id, driver(bench), bench)
      #expect(ended.state == .done && ended.progress.matched == 0)
      #expect(try await bench.store.task(labeled.id) != nil)
    }
  }

  @Test("an actor may have a hundred operations under way, whatever others have") func most() async throws {
    try await APIBench.run { bench in
      func create(_ actor: String?) async throws -> UniqueID {
        try await bench.store.createOperation(
          TaskOperation(
            id: .make(), action: .pause, selection: .ids([.make()]), actor: actor,
            createdAt: Timestamp(microseconds: Clocks.realtimeMicroseconds()))
        ).id
      }
      var first: UniqueID?
      for _ in 0..<TaskOperation.mostUnfinished { first = try await create("ann") }
      await #expect(throws: TooManyOperations.self) { try await create("ann") }
      _ = try await create("bob")
      _ = try await create(nil)
      _ = try await finish(#require(first), driver(bench), bench)
      _ = try await create("ann")
      for _ in 0..<TaskOperation.mostUnfinished { _ = try await create("local") }
      let answer = await bench.ask("POST", "/v1/operations", #"{"action": "pause", "filter": {}}"#)
      #expect(answer.status == 429 && answer.body.contains("100 operations have not ended"), "\(answer)")
    }
  }

  @Test("one that the store refuses fails, and neither it nor one that Kafka does not take holds another one up")
  func refused() async throws {
    try await APIBench.run { bench in
      var filter = OperationFilter()
      filter.text = "\0"
      let bad = try await bench.store.createOperation(
        TaskOperation(
          id: .make(), action: .resume, selection: .filter(filter),
          createdAt: Timestamp(microseconds: Clocks.realtimeMicroseconds())))
      let stuck = try await submit(1, host: "b.example", bench)
      _ = try await begin(#"{"action": "pause", "filter": {"host": ["b.example"]}}"#, bench)
      let good = try await begin(#"{"action": "pause", "filter": {"host": ["a.example"]}}"#, bench)
      let driver = driver(bench) { commands in
        if commands.map(\.taskID) == stuck { throw HTTPError(503, "its partition has no leader") }
      }
      #expect(try await finish(bad.id, driver, bench).state == .failed)
      #expect(try await finish(good, driver, bench).state == .done)
    }
  }

  @Test("tasks by their ids: each gets one command; unknown ones are refused") func named() async throws {
    try await APIBench.run { bench in
      let ids = try await submit(700, bench)
      #expect(await bench.ask("POST", "/v1/tasks/\(ids[0])/actions/cancel", "{}").status == 202)
      let list = (ids + [.make()]).map { "\"\($0)\"" }.joined(separator: ",")
      let id = try await begin(#"{"action": "cancel", "ids": [\#(list)]}"#, bench)
      let ended = try await finish(id, driver(bench), bench)
      #expect(ended.progress.matched == 701 && ended.progress.applied == 699)
      #expect(ended.progress.refusals == ["illegal_transition": 1, "unknown_task": 1])
      #expect(try await bench.store.counts() == [.canceled: 700])
      #expect(await bench.ask("GET", "/v1/operations/\(id)").body.contains(#""ids":701,"taskIds":[\#(list)]"#))
      let all = await bench.ask("GET", "/v1/operations").body
      #expect(all.contains(#""ids":701"#) && !all.contains("taskIds"))
    }
  }

  @Test("a task that is named twice gets one command, and counts once") func namedTwice() async throws {
    try await APIBench.run { bench in
      let ids = try await submit(2, bench)
      let body = #"{"action": "cancel", "ids": ["\#(ids[0])", "\#(ids[1])", "\#(ids[0])"]}"#
      let preview = await bench.ask("POST", "/v1/operations?dry_run=true", body)
      #expect(preview.body.contains(#""count":2,"#), "\(preview)")
      let id = try await begin(body, bench)
      let ended = try await finish(id, driver(bench), bench)
      #expect(ended.progress.matched == 2 && ended.progress.applied == 2 && ended.progress.refused == 0)
      #expect(await bench.ask("GET", "/v1/operations/\(id)").body.contains(#""ids":2,"taskIds":["\#(ids[0])","#))
    }
  }

  @Test("another process goes on where one was killed, and no command takes effect twice") func takeover() async throws
  {
    try await APIBench.run { bench in
      let ids = try await submit(2300, bench)
      let id = try await begin(#"{"action": "prioritize", "priority": 9, "filter": {"state": ["queued"]}}"#, bench)
      // The first one dies after it has sent, before it has noted it; each time at another place.
      for round in 1...3 {
        let left = Lock(round)
        let dying = driver(bench) { [store = bench.store, sent = bench.sent] commands in
          sent.withLock { $0 += commands }
          _ = try await store.apply(commands)
          if left.withLock({
            $0 -= 1
            return $0 <= 0
          }) {
            throw CancellationError()
          }
        }
        while (try? await dying.turn()) != nil {}
        #expect(try await driver(bench).turn() == false, "the lease of the one that is gone holds")
        _ = try await bench.pool.query("update operation set lease_until = now() - interval '1 s'")
      }
      let ended = try await finish(id, driver(bench), bench)
      #expect(ended.state == .done && ended.progress.applied == 2300 && ended.progress.matched == 2300)
      let sent = bench.sent.withLock { $0 }
      #expect(sent.count > 2300, "something was sent twice")
      #expect(Set(sent).count == 2300)
      for id in [ids[0], ids[1150], ids[2299]] {
        #expect(try await bench.store.task(id)?.sequence == 2, "one event beside its submission")
      }
    }
  }

  @Test(
    "a canceled operation sends nothing more, counts what was sent, and ends", arguments: [false, true])
  func cancel(afterItsDriverHasDied: Bool) async throws {
    try await APIBench.run { bench in
      _ = try await submit(5000, bench)
      let id = try await begin(#"{"action": "pause", "filter": {}}"#, bench)
      let driver = driver(bench)
      for _ in 0..<4 { _ = try await driver.turn() }
      if afterItsDriverHasDied {
        // Kafka has its last batch, and nobody has noted that.
        _ = try await bench.pool.query("update operation set lease_until = now() - interval '1 s'")
        let dying = self.driver(bench) { commands in
          bench.sent.withLock { $0 += commands }
          _ = try await bench.store.apply(commands)
          throw CancellationError()
        }
        await #expect(throws: CancellationError.self) { for _ in 0..<4 { _ = try await dying.turn() } }
        _ = try await bench.pool.query("update operation set lease_until = now() - interval '1 s'")
      }
      let answer = await bench.ask("POST", "/v1/operations/\(id)/cancel", "{}")
      #expect(answer.status == 200 && answer.body.contains(#""state":"canceled""#))
      let before = bench.sent.withLock { $0.count }
      let ended = try await finish(id, driver, bench)
      #expect(ended.state == .canceled && bench.sent.withLock { $0.count } == before)
      #expect(ended.progress.applied == Int64(before) && before < 5000)
      let again = await bench.ask("POST", "/v1/operations/\(id)/cancel", "{}")
      #expect(again.status == 200 && again.body.contains(#""state":"canceled""#))
    }
  }

  @Test("commands that are not applied hold the operation back at its window") func backpressure() async throws {
    try await APIBench.run { bench in
      _ = try await submit(6000, bench)
      let id = try await begin(#"{"action": "pause", "filter": {}}"#, bench)
      let lost = Lock<[Command]>([])
      let driver = driver(bench) { commands in lost.withLock { $0 += commands } }
      for _ in 0..<40 { _ = try await driver.turn() }
      #expect(lost.withLock { $0.count } == OperationPlanner.batch * OperationPlanner.window)
      let waiting = try #require(try await bench.store.operation(id))
      #expect(waiting.finishedAt == nil && waiting.progress.applied == 0)
      _ = try await bench.pool.query("update operation set moved_at = now() - interval '2 h'")
      let ended = try await finish(id, driver, bench)
      #expect(ended.state == .failed && ended.error?.contains("not all applied") == true)
    }
  }

  @Test("an operation that nobody drove for hours goes on if its commands were applied") func longRest() async throws {
    try await APIBench.run { bench in
      _ = try await submit(1200, bench)
      let id = try await begin(#"{"action": "pause", "filter": {}}"#, bench)
      let first = driver(bench)
      for _ in 0..<2 { _ = try await first.turn() }
      _ = try await bench.pool.query(
        "update operation set moved_at = now() - interval '2 h', lease_until = now() - interval '2 h'")
      let ended = try await finish(id, driver(bench), bench)
      #expect(ended.state == .done && ended.progress.applied == 1200, "\(ended)")
    }
  }

  @Test("the last word counts: an operation waits until an older one with another action has ended")
  func lastWord() async throws {
    try await APIBench.run { bench in
      let ids = try await submit(1200, queue: "ov", bench)
      let pause = try await begin(#"{"action": "pause", "filter": {"queue": ["ov"]}}"#, bench)
      let first = driver(bench)
      _ = try await first.turn()
      let resume = try await begin(#"{"action": "resume", "filter": {"queue": ["ov"]}}"#, bench)
      let told = #""state":"running","waitsFor":{"id":"\#(pause)","action":"pause"},"matched":0"#
      #expect(await bench.ask("GET", "/v1/operations/\(resume)").body.contains(told))
      #expect(await bench.ask("GET", "/v1/operations").body.contains(told))
      let ended = try await finish(resume, first, bench)
      #expect(ended.progress.matched == 1200 && ended.progress.applied == 1200 && ended.waitsFor == nil)
      #expect(try await bench.store.operation(pause)?.progress.applied == 1200)
      let states = try await bench.store.states(of: ids)
      #expect(ids.allSatisfy { states[$0] == .queued })
    }
  }

  @Test("a pause is over when the runs have stopped, so that what comes after it finds them paused")
  func lastWordOfRuns() async throws {
    try await APIBench.run { bench in
      let id = try await submit(1, queue: "runs", bench)[0]
      let worker = try await bench.store.register(
        WorkerRegistration(boot: .make(), host: "mill", pid: 1, leaseSeconds: 3600, kinds: [.noop], volumes: [:]))
      let claim = try #require(try await bench.store.claim(worker, limit: 1, call: 1).first)
      let driver = driver(bench)
      let pause = try await begin(#"{"action": "pause", "filter": {"queue": ["runs"]}}"#, bench)
      let resume = try await begin(#"{"action": "resume", "filter": {"queue": ["runs"]}}"#, bench)
      for _ in 0..<5 { _ = try await driver.turn() }
      #expect(try await bench.store.stopping([id]) == [id: .pause])
      #expect(try await bench.store.operation(pause)?.finishedAt == nil)
      #expect(try await bench.store.operation(resume)?.waitsFor?.id == pause)
      let stopped = Settlement(taskID: id, epoch: claim.epoch, outcome: .released(reason: nil, delay: .zero))
      #expect(try await bench.store.settle([stopped]) == [true])
      let ended = try await finish(resume, driver, bench)
      #expect(ended.progress.matched == 1 && ended.progress.applied == 1)
      #expect(try await bench.store.operation(pause)?.progress.applied == 1)
      #expect(try await bench.store.states(of: [id])[id] == .queued)
    }
  }

  @Test("operations that wait hold no others up, and go on once the older one is canceled") func stuck() async throws {
    try await APIBench.run { bench in
      _ = try await submit(1, queue: "stuck", bench)
      _ = try await submit(1, queue: "other", bench)
      let stuck = try await begin(#"{"action": "pause", "filter": {"queue": ["stuck"]}}"#, bench)
      let held = Lock<[Command]>([])
      let driver = driver(bench) { [store = bench.store] commands in
        if held.withLock({
          $0 += commands
          return $0.count > 1
        }) {
          _ = try await store.apply(commands)
        }
      }
      while held.withLock({ $0.isEmpty }) { _ = try await driver.turn() }
      var waiting = stuck
      for _ in 0..<10 { waiting = try await begin(#"{"action": "cancel", "filter": {"queue": ["stuck"]}}"#, bench) }
      let other = try await begin(#"{"action": "pause", "filter": {"queue": ["other"]}}"#, bench)
      #expect(try await finish(other, driver, bench).progress.applied == 1)
      #expect(await bench.ask("POST", "/v1/operations/\(stuck)/cancel", "{}").status == 200)
      _ = try await driver.turn()
      let still = try await bench.store.operation(waiting)
      #expect(still?.waitsFor?.id == stuck, "what was sent may still be applied")
      _ = try await bench.store.apply(held.withLock { Array($0.prefix(1)) })
      let ended = try await finish(waiting, driver, bench)
      #expect(ended.state == .done && ended.waitsFor == nil)
      #expect(try await bench.store.counts() == [.canceled: 1, .paused: 1])
    }
  }

  @Test("who works on one operation works on those for which it waits, and on no others") func alone() async throws {
    try await APIBench.run { bench in
      let ids = try await submit(3, bench)
      let first = try await begin(#"{"action": "pause", "ids": ["\#(ids[0])"]}"#, bench)
      let second = try await begin(#"{"action": "resume", "ids": ["\#(ids[0])", "\#(ids[1])"]}"#, bench)
      let other = try await begin(#"{"action": "pause", "ids": ["\#(ids[2])"]}"#, bench)
      let last = try await begin(#"{"action": "cancel", "ids": ["\#(ids[1])"]}"#, bench)
      let ended = try await finish(last, driver(bench, only: last), bench)
      #expect(ended.progress.applied == 1)
      for id in [first, second] { #expect(try await bench.store.operation(id)?.state == .done) }
      #expect(try await bench.store.operation(other)?.progress.matched == 0)
    }
  }

  @Test("that operations wait for Kafka is told once, and so is that they go on") func outage() async throws {
    try await APIBench.run { bench in
      _ = try await submit(1, bench)
      let id = try await begin(#"{"action": "pause", "filter": {}}"#, bench)
      let (failures, told) = (Lock(2), Lock<[String]>([]))
      let driver = OperationDriver(
        store: bench.store,
        send: { [store = bench.store] commands in
          let fails = failures.withLock {
            $0 -= 1
            return $0 >= 0
          }
          if fails { throw HTTPError(503, "no Kafka") }
          _ = try await store.apply(commands)
        }, loop: bench.loop,
        onOutage: { error in told.withLock { $0.append(error == nil ? "goes on" : "waits") } })
      let work = bench.loop.task { await driver.run() }
      try await eventually("it has ended") { try await bench.store.operation(id)?.state == .done }
      work.cancel()
      _ = await work.result
      #expect(told.withLock { $0 } == ["waits", "goes on"])
    }
  }

  @Test("the same Idempotency-Key is the same operation, and no other one's") func key() async throws {
    try await APIBench.run { bench in
      let body = #"{"action": "pause", "filter": {"queue": ["a"]}}"#
      let first = await bench.ask("POST", "/v1/operations", body, ["Idempotency-Key": "k"])
      let again = await bench.ask("POST", "/v1/operations", body, ["Idempotency-Key": "k"])
      #expect(first.status == 202 && first.headers["location"] == again.headers["location"])
      let other = #"{"action": "pause", "filter": {}}"#
      let reused = await bench.ask("POST", "/v1/operations", other, ["Idempotency-Key": "k"])
      #expect(reused.status == 422 && reused.body.contains(#""code":"idempotency_key_reused""#), "\(reused)")
      let kept = try await bench.store.operations(limit: 10, within: nil)
      #expect(kept.count == 1)
    }
  }

  @Test("wrong operations are refused with their reason") func wrong() async throws {
    try await APIBench.run { bench in
      for (status, method, target, body) in [
        (422, "POST", "/v1/operations", "{}"), (422, "POST", "/v1/operations", #"{"action": "pause"}"#),
        (422, "POST", "/v1/operations", #"{"action": "dance", "filter": {}}"#),
        (422, "POST", "/v1/operations", #"{"action": "prioritize", "filter": {}}"#),
        (422, "POST", "/v1/operations", #"{"action": "prioritize", "priority": 1001, "filter": {}}"#),
        (422, "POST", "/v1/operations", #"{"action": "pause", "filter": {}, "ids": []}"#),
        (422, "POST", "/v1/operations", #"{"action": "pause", "filter": {"sate": ["queued"]}}"#),
        (422, "POST", "/v1/operations", #"{"action": "pause", "filter": {"state": ["happy"]}}"#),
        (422, "POST", "/v1/operations", #"{"action": "remove", "files": true, "filter": {"text": ""}}"#),
        (422, "POST", "/v1/operations?dry_run=true", #"{"action": "pause", "filter": {"queue": ["a"], "text": ""}}"#),
        (422, "POST", "/v1/operations", #"{"action": "pause", "ids": ["x"]}"#),
        (422, "POST", "/v1/operations", #"{"action": "pause", "filter": {"text": "\u0000"}}"#),
        (400, "POST", "/v1/operations?dry_run=1", #"{"action": "pause", "filter": {}}"#),
        (404, "GET", "/v1/operations/\(UniqueID.make())", ""), (400, "GET", "/v1/operations/7", ""),
        (404, "POST", "/v1/operations/\(UniqueID.make())/cancel", "{}"),
      ] {
        let answer = await bench.ask(method, target, body)
        #expect(answer.status == status, "\(method) \(target) \(body): \(answer)")
      }
      let kept = try await bench.store.operations(limit: 10, within: nil)
      #expect(kept.isEmpty)
    }
  }
}
