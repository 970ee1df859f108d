import ControlAPI
import HTTPServer
import ReelhaulClient
import ReelhaulPostgres
import TaskAdvice
import TaskCore
import TaskStore
import TestKit
import Testing

/// What the API tells about lists and about the fleet as a whole.
@Suite struct FleetRouteTests {
  @Test("a list is narrowed by every field, goes on behind its cursor, and has only the members asked for")
  func list() async throws {
    try await APIBench.run { bench in
      let ids = [UniqueID.make(), .make(), .make()]
      for (id, queue) in zip(ids, ["a", "b", "b"]) {
        #expect(await bench.submit(id, #", "queue": "\#(queue)", "labels": {"n": "\#(queue)"}"#) == 202)
      }
      let first = await bench.ask("GET", "/v1/tasks?limit=2&fields=id,queue")
      #expect(
        first.body.hasPrefix(
          #"{"tasks":[{"id":"\#(ids[2])","queue":"b"},{"id":"\#(ids[1])","queue":"b"}],"hasMore":true,"next":""#))
      let next = try #require(first.body.firstMatch(of: /"next":"([^"]+)"/)).1
      let second = await bench.ask("GET", "/v1/tasks?limit=2&fields=id&cursor=\(next)")
      #expect(second.body == #"{"tasks":[{"id":"\#(ids[0])"}],"hasMore":false,"next":null,"searchedTo":null}"#)
      for (query, found) in [
        ("queue=a", [0]), ("queue=a,b&sort=createdAt", [0, 1, 2]),
        ("state=queued,failed&queue=b&sort=createdAt", [1, 2]),
        ("state=failed", []), ("kind=noop&label=n=a", [0]), ("label=n&sort=createdAt", [0, 1, 2]),
        ("label=n=a,n", [0]), ("label=n,n=a,n=a", [0]),
        ("kind=download", []),
        ("text=\(String(ids[1].description.suffix(12)))", [1]), ("host=nowhere.example", []),
        ("after=2000-01-01T00:00:00Z&before=2100-01-01T00:00:00Z&sort=createdAt", [0, 1, 2]),
        ("before=2000-01-01T00:00:00Z", []),
      ] {
        let body = await bench.ask("GET", "/v1/tasks?fields=id&\(query)").body
        let tasks = found.map { #"{"id":"\#(ids[$0])"}"# }.joined(separator: ",")
        #expect(body.hasPrefix(#"{"tasks":[\#(tasks)]"#), "\(query): \(body)")
      }
      for query in [
        "state=queued,happy", "state=", "queue=a,,b", "label==x", "label=n=a,n=b", "after=yesterday", "sort=priority",
        "cursor=x",
        "cursor=1_2",
        "fields=id,secret", "text=" + String(repeating: "x", count: 1001),
        "queue=" + String(repeating: "a,", count: 100) + "a",
      ] {
        let answer = await bench.ask("GET", "/v1/tasks?\(query)")
        #expect(answer.status == 400 && answer.body.contains(#""detail":""#), "\(query)")
      }
    }
  }

  @Test("a worker whose lease is over counts as none") func deadWorkers() async throws {
    try await APIBench.run { bench in
      _ = try await bench.store.register(.apiTest)
      #expect(await bench.ask("GET", "/v1/overview").body.contains(#""workers":1"#))
      _ = try await bench.pool.query("update worker set lease_until = now() - interval '1 s'")
      // Of what was read before, nothing is kept.
      let other = APIBench(store: bench.store, pool: bench.pool, loop: bench.loop, settings: .init())
      #expect(await other.ask("GET", "/v1/overview").body.contains(#""workers":0"#))
      #expect(await other.ask("GET", "/metrics").body.contains("\nreelhaul_workers 0\n"))
    }
  }

  @Test("the fields that a list may be asked for are the members of a task") func members() async throws {
    try await APIBench.run { bench in
      #expect(await bench.submit(.make()) == 202)
      let whole = await bench.ask("GET", "/v1/tasks").body
      let some = await bench.ask("GET", "/v1/tasks?fields=\(TaskReport.members.joined(separator: ","))").body
      #expect(whole == some && whole.contains(#""kind":"noop""#))
    }
  }

  @Test("failures are grouped by error and host, or by error alone, and the overview has few groups")
  func failures() async throws {
    try await APIBench.run { bench in
      let worker = try await bench.store.register(.apiTest)
      let hosts = (1...6).map { "h\($0).example" } + ["h1.example"]
      _ = try await bench.store.apply(hosts.map { Command.submit(.api(host: $0)) })
      for claim in try await bench.store.claim(worker, limit: 10, call: 1) {
        let failure = TaskFailure(code: .http(404), message: "It is not there.", class: .fail)
        let outcome = Settlement.Outcome.failed(failure, retryIn: nil)
        _ = try await bench.store.settle([Settlement(taskID: claim.spec.id, epoch: claim.epoch, outcome: outcome)])
      }

      let byHost = await bench.ask("GET", "/v1/failures").body
      #expect(byHost.split(separator: #""taskId":"#).count == 7, "\(byHost)")
      #expect(byHost.contains("'reelhaul retry --all --state failed --code http_404 --host h1.example' tries again."))
      #expect(byHost.contains(#""hostCount":1,"hosts":[{"host":"h2.example","count":1}]"#), "\(byHost)")

      let byCode = await bench.ask("GET", "/v1/failures?by=code").body
      for part in [
        #"{"failures":[{"code":"http_404","host":"","count":7,"isAtLeast":false,"newestAt":""#,
        "'reelhaul retry --all --state failed --code http_404' tries again.",
        #""hostCount":6,"hosts":[{"host":"h1.example","count":2},{"host":"h2.example","count":1},"#,
      ] { #expect(byCode.contains(part), "\(part)\n\(byCode)") }

      // Who sees some queues alone is not told to retry the tasks of others.
      let ofQueues = await bench.ask("GET", "/v1/failures?by=code&queue=other,default").body
      #expect(ofQueues.contains("--code http_404 --queue default --queue other' tries again."), "\(ofQueues)")

      let overview = await bench.ask("GET", "/v1/overview").body
      #expect(overview.contains(#""failures":[{"code":"http_404","host":"","count":7,"#), "\(overview)")
    }
  }

  @Test("sizes that add up to more than a number holds do not end the server") func hugeSizes() async throws {
    try await APIBench.run { bench in
      let worker = try await bench.store.register(.apiTest)
      for (call, queue) in ["a", "b"].enumerated() {
        var spec = TaskSpec.api()
        spec.queue = queue
        _ = try await bench.store.apply([.submit(spec)])
        for claim in try await bench.store.claim(worker, limit: 10, call: Int64(call + 1)) {
          let outcome = Settlement.Outcome.succeeded(sha256: nil, bytes: .max)
          _ = try await bench.store.settle([Settlement(taskID: claim.spec.id, epoch: claim.epoch, outcome: outcome)])
        }
      }
      let body = await bench.ask("GET", "/v1/overview").body
      #expect(body.contains(#""bytesToday":9223372036854775807,"succeededToday":2"#), "\(body)")
    }
  }

  @Test("the overview says what ended today, what is stuck and why, and what failed") func overview() async throws {
    try await APIBench.run { bench in
      let worker = try await bench.store.register(.apiTest)
      try await bench.store.setLimit(.host, name: "full.example", to: 1)
      for _ in 0..<4 {
        _ = try await bench.store.apply([.submit(.api(host: "full.example"))])
      }
      var paused = TaskSpec.api()
      paused.paused = true
      var foreign = TaskSpec.api()
      foreign.kind = TaskKind(rawValue: "transcode")
      var homeless = TaskSpec.api()
      homeless.destination = "storage://nowhere/film.mp4"
      let first = TaskSpec.api(host: "broken.example")
      _ = try await bench.store.apply([paused, foreign, homeless, first].map(Command.submit))
      for claim in try await bench.store.claim(worker, limit: 10, call: 1) {
        let failure = TaskFailure(code: .http(404), message: "It is not there.", class: .fail)
        let outcome: Settlement.Outcome =
          claim.spec.id == first.id ? .failed(failure, retryIn: nil) : .succeeded(sha256: nil, bytes: 700)
        _ = try await bench.store.settle([Settlement(taskID: claim.spec.id, epoch: claim.epoch, outcome: outcome)])
      }
      try await bench.store.setLimit(.host, name: "full.example", to: 0)
      let body = await bench.ask("GET", "/v1/overview").body
      for part in [
        #""bytesToday":700,"succeededToday":1,"failedToday":1"#,
        #"{"reason":"pause","count":3,"isAtLeast":false,"text":"3 tasks wait because host full.example is paused: its limit is 0.","query":"state=queued&host=full.example"}"#,
        #"{"reason":"pause","count":1,"isAtLeast":false,"text":"1 task is paused until somebody resumes it.","query":"state=paused"}"#,
        #"{"reason":"worker","count":1,"isAtLeast":false,"text":"1 task waits for a worker with a handler for the kind transcode: no live worker has one.","query":"state=queued&kind=transcode"}"#,
        #""text":"1 task waits for a worker with the storage nowhere: no live worker can use it.","query":"state=queued&text=storage%3A%2F%2Fnowhere%2F"}"#,
        #""failures":[{"code":"http_404","host":"broken.example","count":1,"isAtLeast":false,"newestAt":""#,
        #""taskId":"\#(first.id)","message":"It is not there.","advice":"Submit a new task if the URL was wrong"#,
      ] { #expect(body.contains(part), "\(part)\n\(body)") }

      #expect(await bench.ask("GET", "/v1/failures?queue=elsewhere").body == #"{"failures":[]}"#)
      #expect(await bench.ask("GET", "/v1/failures?queue=default").body.contains(#""host":"broken.example""#))
      let hosts = await bench.ask("GET", "/v1/hosts").body
      #expect(
        hosts.contains(#"{"host":"full.example","waiting":3,"running":0,"failed":0,"limit":0,"bytesPerSecond":0}"#),
        "\(hosts)")
      #expect(
        hosts.contains(
          #"{"host":"broken.example","waiting":0,"running":0,"failed":1,"limit":null,"bytesPerSecond":0}"#), "\(hosts)")
      let queues = await bench.ask("GET", "/v1/queues").body
      #expect(
        queues.hasPrefix(#"{"queues":[{"queue":"default","weight":1"#) && queues.contains(#""queued":5,"#), "\(queues)")
      #expect(queues.hasSuffix(#""oldestRunnableAgeSeconds":null}],"hasMore":false}"#), "\(queues)")
      #expect(
        await bench.ask("GET", "/v1/counts?by=kind").body
          == #"{"counts":[{"kind":"noop","count":7},{"kind":"transcode","count":1}]}"#)
      #expect(
        await bench.ask("GET", "/v1/counts").body.contains(
          #"{"state":"failed","queue":"default","kind":"noop","count":1}"#))
      #expect(await bench.ask("GET", "/v1/counts?by=host").status == 400)
    }
  }

  @Test("storages have the space that a worker told last, and samples the differences of their totals")
  func storagesAndSamples() async throws {
    try await APIBench.run { bench in
      let worker = try await bench.store.register(.apiTest)
      #expect(
        await bench.ask("GET", "/v1/storages").body
          == #"{"storages":[{"storage":"default","freeBytes":null,"promisedBytes":null,"totalBytes":null,"workers":1}]}"#
      )
      try await bench.store.measure(
        worker,
        spaces: [
          "default": StorageSpace(free: 5, promised: 2, total: 9),
          "gone": StorageSpace(free: 1, promised: 1, total: nil),
        ])
      #expect(
        await bench.ask("GET", "/v1/storages").body
          == #"{"storages":[{"storage":"default","freeBytes":5,"promisedBytes":2,"totalBytes":9,"workers":1}]}"#)

      _ = try await bench.pool.withConnection {
        try await $0.script(
          """
          insert into fleet_sample
          select '2026-01-01 00:00'::timestamptz + n * interval '10 s', 0, n, 1, 0, 0, n * 2, 0, n, n * 100, n * 2, 7, n
            from generate_series(0, 11) n
          """)
      }
      let time = "from=2026-01-01T00:00:30Z&to=2026-01-01T00:02:00Z"
      let samples = await bench.ask("GET", "/v1/samples?\(time)&step=60").body
      #expect(samples.hasPrefix(#"{"step":60,"samples":[{"at":"2026-01-01T00:00:00.000000Z","counts":{"#), "\(samples)")
      #expect(samples.contains(#""bytesPerSecond":400,"succeeded":6,"failed":3,"canceled":0}"#), "\(samples)")
      #expect(samples.hasSuffix(#""bytesPerSecond":850,"succeeded":12,"failed":6,"canceled":0}]}"#), "\(samples)")
      #expect(await bench.ask("GET", "/v1/samples?\(time)").body.hasPrefix(#"{"step":10,"#))
      for (status, query) in [
        (400, "from=x"), (400, "step=5"), (400, "step=x"), (422, "from=2026-01-01T00:00:00Z&to=2025-01-01T00:00:00Z"),
        (422, "from=2020-01-01T00:00:00Z&step=10"),
      ] {
        #expect(await bench.ask("GET", "/v1/samples?\(query)").status == status, "\(query)")
      }
    }
  }
}

extension WorkerRegistration {
  static var apiTest: WorkerRegistration {
    WorkerRegistration(
      boot: .make(), host: "test", pid: 1, leaseSeconds: 3600, kinds: [.noop], volumes: ["default": .make()])
  }
}

extension TaskSpec {
  static func api(host: String = "example.org") -> TaskSpec {
    TaskSpec(id: .make(), kind: .noop, source: "https://\(host)/a")
  }
}
