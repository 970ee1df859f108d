import ReelhaulCodec
import ReelhaulPostgres
import TaskCore
import TaskStore
import TestKit
import Testing

/// The store keeps the events of web hooks until they are delivered.
@Suite struct HookTests {
  private static func event(_ task: UniqueID, _ sequence: Int, host: String = "a.example") -> HookEvent {
    HookEvent(
      taskID: task, sequence: sequence, kind: .submitted, url: "https://\(host)/hook", host: host,
      json: Array(#"{"sequence":\#(sequence)}"#.utf8))
  }

  private static func claim(
    _ fixture: StoreFixture, _ worker: WorkerID, limit: Int = 10, perHost: Int = 10,
    besides underWay: [String: Int] = [:]
  ) async throws -> [String] {
    try await fixture.store.claimHooks(
      worker, limit: limit, perHost: perHost, besides: underWay, failing: [], places: 0
    )
    .map { "\($0.event.taskID) \($0.event.sequence)" }.sorted()
  }

  @Test("the events of a task are given out one after the other, each to one worker", arguments: StoreKind.allCases)
  func order(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let (worker, other) = (try await fixture.worker(), try await fixture.worker())
      let (a, b) = (UniqueID.random(), UniqueID.random())
      let events = [Self.event(a, 1), Self.event(a, 2), Self.event(b, 5)]
      try await fixture.store.addHooks(events)
      try await fixture.store.addHooks(Array(events.reversed()))
      #expect(try await Self.claim(fixture, worker) == ["\(a) 1", "\(b) 5"].sorted())
      #expect(try await Self.claim(fixture, other) == [])
      try await fixture.store.finishHook(a, sequence: 1)
      let next = try await fixture.store.claimHooks(other, limit: 10, perHost: 10, besides: [:], failing: [], places: 0)
      #expect(next.map(\.event) == [events[1]] && next.first?.attempt == 1)
      #expect(try await fixture.store.undeliveredHooks(of: a).map(\.event.sequence) == [2])
      try await fixture.store.finishHook(a, sequence: 2)
      try await fixture.store.finishHook(a, sequence: 2)
      #expect(try await fixture.store.undeliveredHooks(of: a) == [])
    }
  }

  @Test("a host gets only so many at a time, and a dead worker none", arguments: StoreKind.allCases)
  func hosts(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let (worker, dead) = (try await fixture.worker(), try await fixture.worker())
      let tasks = (0..<5).map { _ in UniqueID.random() }
      try await fixture.store.addHooks(tasks.map { Self.event($0, 1) } + [Self.event(.random(), 1, host: "b.example")])
      try await fixture.expireLease(dead)
      #expect(try await Self.claim(fixture, dead) == [])
      #expect(try await Self.claim(fixture, worker, perHost: 2, besides: ["a.example": 2, "b.example": 3]) == [])
      #expect(try await Self.claim(fixture, worker, perHost: 3, besides: ["a.example": 1]).count == 3)
      #expect(try await Self.claim(fixture, worker, limit: 1).count == 1)
      #expect(try await Self.claim(fixture, worker).count == 2)
    }
  }

  @Test("a hook of a queue with a long URL can be changed and ended", arguments: StoreKind.allCases)
  func longURLs(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let urls = (1...2).map { seed in
        "https://a.example/\(Base64URL.encode(OriginContent(seed: UInt64(seed)).bytes(0..<6000)))"
      }
      for url in [urls[0], urls[1], urls[0], nil] { try await fixture.store.setQueueHook("a", to: url) }
      #expect(try await fixture.store.queueHooks().isEmpty)
    }
  }

  @Test("hosts that fail get no more than their places together", arguments: StoreKind.allCases)
  func failing(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let bad = (0..<10).map { "bad-\($0).example" }
      for host in bad + ["good.example"] {
        try await fixture.store.addHooks((0..<3).map { _ in Self.event(.random(), 1, host: host) })
      }
      func claim(_ places: Int) async throws -> [String] {
        try await fixture.store.claimHooks(
          worker, limit: 12, perHost: 2, besides: [:], failing: Set(bad), places: places
        ).map(\.event.host)
      }
      let first = try await claim(4)
      #expect(first.count { $0 != "good.example" } == 4 && first.count { $0 == "good.example" } == 2)
      #expect(try await claim(0) == ["good.example"])
      #expect(try await claim(100).count == 12)
    }
  }

  @Test("hosts with fewer deliveries under way come first, however long others wait", arguments: StoreKind.allCases)
  func sharing(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let quick = UniqueID.random()
      for _ in 0..<4 { try await fixture.store.addHooks((0..<50).map { _ in Self.event(.random(), 1) }) }
      try await fixture.store.addHooks([Self.event(.random(), 1, host: "b.example")])
      try await fixture.store.addHooks([Self.event(quick, 1, host: "c.example")])
      let underWay = ["a.example": 3, "b.example": 1]
      #expect(try await Self.claim(fixture, worker, limit: 1, perHost: 4, besides: underWay) == ["\(quick) 1"])
      let rest = try await fixture.store.claimHooks(
        worker, limit: 10, perHost: 4, besides: underWay, failing: [], places: 0)
      #expect(rest.map(\.event.host).sorted() == ["a.example", "b.example"])
    }
  }

  @Test("one that failed waits with the later ones of its task, and tells why", arguments: StoreKind.allCases)
  func postpone(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let (task, free) = (UniqueID.random(), UniqueID.random())
      try await fixture.store.addHooks([Self.event(task, 1), Self.event(task, 2)])
      #expect(try await Self.claim(fixture, worker) == ["\(task) 1"])
      try await fixture.store.postponeHook(task, sequence: 1, after: .seconds(3600), error: "status 500")
      try await fixture.store.addHooks([Self.event(task, 3), Self.event(free, 1)])
      #expect(try await Self.claim(fixture, worker) == ["\(free) 1"])
      let shown = try await fixture.store.undeliveredHooks(of: task)
      #expect(shown.map(\.error) == ["status 500", nil, nil] && shown.map(\.attempt) == [1, 0, 0])
      #expect(Set(shown.map(\.runAt)).count == 1)
      try await fixture.store.postponeHook(task, sequence: 1, after: .zero, error: "again")
      #expect(try await Self.claim(fixture, worker) == ["\(task) 1"])
      #expect(try await fixture.store.undeliveredHooks(of: task).first?.attempt == 2)
    }
  }

  @Test("one that is given up stays to be seen, and the next one goes on", arguments: StoreKind.allCases)
  func giveUp(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let task = UniqueID.random()
      try await fixture.store.addHooks([Self.event(task, 1), Self.event(task, 2)])
      _ = try await Self.claim(fixture, worker)
      try await fixture.store.postponeHook(task, sequence: 1, after: .seconds(60), error: "away")
      #expect(try await fixture.store.giveUpHook(task, sequence: 1, error: "gone") == 1)
      #expect(try await Self.claim(fixture, worker) == ["\(task) 2"])
      let shown = try await fixture.store.undeliveredHooks(of: task)
      #expect(shown.map { $0.gaveUpAt != nil } == [true, false] && shown.first?.error == "gone")
      // A repeated round of the relay does not bring it back.
      try await fixture.store.addHooks([Self.event(task, 1)])
      try await fixture.store.finishHook(task, sequence: 2)
      #expect(try await Self.claim(fixture, worker) == [])
    }
  }

  @Test("what waited for three days is given up with one of its URL that failed", arguments: StoreKind.allCases)
  func giveUpMany(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      let worker = try await fixture.worker()
      let (failed, late, next, young) = (UniqueID.random(), UniqueID.random(), UniqueID.random(), UniqueID.random())
      let (claimed, elsewhere, forgotten) = (UniqueID.random(), UniqueID.random(), UniqueID.random())
      let others = [elsewhere, forgotten].map { task in
        var event = Self.event(task, 1)
        event.url = "https://a.example/\(task)"
        return event
      }
      try await store.addHooks([Self.event(failed, 1), Self.event(claimed, 1)])
      #expect(try await Self.claim(fixture, worker).count == 2)
      try await store.addHooks([late, next, young].map { Self.event($0, 1) } + others)
      for task in [failed, claimed, late, elsewhere] { try await fixture.ageHooks(task, 4) }
      try await fixture.ageHooks(next, 2)
      try await fixture.ageHooks(forgotten, 8)
      try await store.addHooks([Self.event(failed, 2), Self.event(late, 2)])

      #expect(try await store.giveUpHook(failed, sequence: 1, error: "away for three days") == 3)
      #expect(try await store.undeliveredHooks(of: late).map(\.error) == ["away for three days", nil])
      let open = ["\(failed) 2", "\(late) 2", "\(next) 1", "\(young) 1", "\(elsewhere) 1"]
      #expect(try await Self.claim(fixture, worker) == open.sorted())
      // A young one takes none along.
      try await store.postponeHook(elsewhere, sequence: 1, after: .zero, error: "away")
      #expect(try await store.giveUpHook(young, sequence: 1, error: "gone") == 1)
      #expect(try await Self.claim(fixture, worker) == ["\(elsewhere) 1"])
    }
  }

  @Test("a failure that comes late, after another worker delivered, changes nothing", arguments: StoreKind.allCases)
  func lateFailure(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let task = UniqueID.random()
      try await fixture.store.addHooks([Self.event(task, 1), Self.event(task, 2)])
      _ = try await Self.claim(fixture, worker)
      try await fixture.store.finishHook(task, sequence: 1)
      try await fixture.store.postponeHook(task, sequence: 1, after: .seconds(3600), error: "away")
      #expect(try await fixture.store.giveUpHook(task, sequence: 1, error: "gone") == 0)
      #expect(try await Self.claim(fixture, worker) == ["\(task) 2"])
    }
  }

  @Test("a queue has a web hook until it is taken away", arguments: StoreKind.allCases)
  func queues(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      #expect(try await fixture.store.queueHooks() == [:])
      try await fixture.store.setQueueHook("a", to: "https://a.example/")
      try await fixture.store.setQueueHook("b", to: "https://b.example/")
      try await fixture.store.setQueueHook("a", to: "https://c.example/")
      #expect(try await fixture.store.queueHooks() == ["a": "https://c.example/", "b": "https://b.example/"])
      try await fixture.store.setQueueHook("a", to: nil)
      #expect(try await fixture.store.queueHooks() == ["b": "https://b.example/"])
    }
  }

  private static let (wrong, right) = ("https://wrong.example/hook", "https://[2001:DB8::1]:8443/hook?key=1")

  /// As the relay adds it that knows only the wrong URL.
  private static func stale(_ spec: TaskSpec, _ sequence: Int) -> HookEvent {
    HookEvent(
      taskID: spec.id, sequence: sequence, kind: .submitted, url: wrong, host: "wrong.example",
      json: Array(#"{"task":{"queue":"\#(spec.queue)"}}"#.utf8), queue: spec.notify == nil ? spec.queue : nil)
  }

  @Test(
    "what waits for a queue's former web hook goes to the new one as if never tried, or is dropped",
    arguments: StoreKind.allCases)
  func change(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      let worker = try await fixture.worker()
      let (a, removed, other) = (TaskSpec.noop(queue: "a"), TaskSpec.noop(queue: "a"), TaskSpec.noop(queue: "b"))
      var own = TaskSpec.noop(queue: "a")
      var removedOwn = TaskSpec.noop(queue: "a")
      (own.notify, removedOwn.notify) = (Self.wrong, Self.wrong)
      let specs = [a, removed, other, own, removedOwn]
      try await fixture.submit(a, removed, other, own, removedOwn)
      for spec in [removed, removedOwn] { try await fixture.control(.remove, spec.id) }
      for queue in ["a", "b"] { try await store.setQueueHook(queue, to: Self.wrong) }
      try await store.addHooks(specs.flatMap { [Self.stale($0, 1), Self.stale($0, 2)] })
      #expect(try await Self.claim(fixture, worker) == specs.map { "\($0.id) 1" }.sorted())
      try await store.postponeHook(a.id, sequence: 1, after: .seconds(3600), error: "away")
      #expect(try await store.giveUpHook(other.id, sequence: 1, error: "gone") == 1)

      try await store.setQueueHook("a", to: Self.right)
      for spec in specs {
        let isMoved = spec.id == a.id || spec.id == removed.id
        let its = try await store.undeliveredHooks(of: spec.id)
        #expect(its.map(\.event.url) == Array(repeating: isMoved ? Self.right : Self.wrong, count: 2))
        #expect(its.allSatisfy { $0.event.host == (isMoved ? "2001:db8::1" : "wrong.example") })
        if isMoved { #expect(its.allSatisfy { $0.attempt == 0 && $0.error == nil }) }
      }
      // One is under way to the former URL, whose answer says nothing of the new one.
      #expect(try await Self.claim(fixture, worker) == ["\(a.id) 1", "\(other.id) 2"].sorted())
      #expect(try await store.giveUpHook(removed.id, sequence: 1, error: "gone") == 0)
      #expect(try await Self.claim(fixture, worker) == ["\(removed.id) 1"])
      try await store.postponeHook(removed.id, sequence: 1, after: .seconds(3600), error: "away")
      #expect(try await store.undeliveredHooks(of: removed.id).map(\.error) == ["away", nil])

      try await store.addHooks([Self.stale(a, 3)])
      #expect(try await store.undeliveredHooks(of: a.id).last?.event.url == Self.right)
      try await store.setQueueHook("a", to: nil)
      try await store.addHooks([Self.stale(a, 4)])
      for spec in [a, removed] { #expect(try await store.undeliveredHooks(of: spec.id) == []) }
      for spec in [other, own, removedOwn] { #expect(try await store.undeliveredHooks(of: spec.id).count == 2) }
    }
  }

  @Test("very many that wait go to the new URL, and what waits is counted by its host, to a limit")
  func many() async throws {
    try await withPostgresStore { store, pool in
      let spec = TaskSpec.noop(queue: "a")
      _ = try await store.apply([.submit(spec)])
      try await store.setQueueHook("a", to: Self.wrong)
      try await store.addHooks([Self.stale(spec, 1)])
      _ = try await pool.query(
        """
        insert into hook_delivery (task_id, sequence, url, host, type, event, queue, run_at, created_at)
        select task_id, n, url, host, type, event, queue, now() + n % 100 * interval '1 s', now() - interval '1 h'
          from hook_delivery, generate_series(2, 25000) n
        """)
      let waiting = try await store.waitingHooks()
      #expect(waiting.map(\.events) == [FleetGauges.limit] && (waiting.first?.age ?? .zero) >= .seconds(3600))
      func count(_ url: String) async throws -> Int64? {
        try await pool.query("select count(*) from hook_delivery where url = $1", .text(url)).first?.int64(0)
      }
      try await store.setQueueHook("a", to: Self.wrong + "/right")
      #expect(try await count(Self.wrong + "/right") == 25_000)
      #expect(try await store.queueHooks() == ["a": Self.wrong + "/right"])
      // A change that is interrupted after its second call, and one that overtakes it.
      let interrupted = PostgresStatement("select set_queue_hook('a', $1)", writes: true)
      for url in [Self.wrong + "/wrong", Self.wrong + "/wrong", Self.right] {
        #expect(try await pool.query(interrupted, .text(url)).value { try $0.bool() } == false)
      }
      #expect(try await count(Self.wrong + "/wrong") == 10_000)
      #expect(try await store.queueHooks() == ["a": Self.right])
      try await store.addHooks([Self.stale(spec, 25_001)])
      for _ in 0..<5 { try await store.goOnMovingHooks() }
      #expect(try await count(Self.right) == 25_001)
      #expect(try await pool.query("select count(*) from former_hook").first?.int64(0) == 0)
      try await store.setQueueHook("a", to: nil)
      #expect(try await store.waitingHooks() == [])
    }
  }

  @Test("a web hook may change while others record results and the relay adds events")
  func changesMeanwhile() async throws {
    try await withPostgresStore { store, _ in
      let spec = TaskSpec.noop(queue: "a")
      _ = try await store.apply([.submit(spec)])
      let worker = try await store.register(.sample)
      try await store.setQueueHook("a", to: Self.wrong)
      try await withThrowingTaskGroup { group in
        group.addTask {
          for number in 0..<100 { try await store.addHooks((1...5).map { Self.stale(spec, 5 * number + $0) }) }
        }
        group.addTask {
          for number in 0..<100 {
            for hook in try await store.claimHooks(worker, limit: 10, perHost: 10, besides: [:], failing: [], places: 0)
            {
              let sequence = hook.event.sequence
              if number % 3 == 0 {
                try await store.finishHook(spec.id, sequence: sequence)
              } else {
                try await store.postponeHook(spec.id, sequence: sequence, after: .zero, error: "away")
              }
            }
          }
        }
        group.addTask {
          for number in 0..<50 { try await store.setQueueHook("a", to: "https://h\(number % 2).example/") }
          try await store.setQueueHook("a", to: Self.right)
        }
        try await group.waitForAll()
      }
      #expect(try await store.waitingHooks().map(\.host) == ["2001:db8::1"])
    }
  }

  @Test("what waits is told by its host, with the last error", arguments: StoreKind.allCases)
  func waiting(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      #expect(try await fixture.store.waitingHooks() == [])
      let (first, second) = (UniqueID.random(), UniqueID.random())
      let events = [Self.event(first, 1), Self.event(first, 2), Self.event(second, 1)]
      try await fixture.store.addHooks(events + [Self.event(.random(), 1, host: "b.example")])
      _ = try await Self.claim(fixture, worker)
      try await fixture.store.postponeHook(first, sequence: 1, after: .zero, error: "former")
      _ = try await Self.claim(fixture, worker)
      try await fixture.store.postponeHook(second, sequence: 1, after: .seconds(60), error: "last")
      let waiting = try await fixture.store.waitingHooks().sorted { $0.host < $1.host }
      #expect(waiting.map(\.host) == ["a.example", "b.example"] && waiting.map(\.events) == [3, 1])
      #expect(waiting.map(\.error) == ["last", nil] && waiting.allSatisfy { $0.age >= .zero })
      #expect(try await fixture.store.giveUpHook(second, sequence: 1, error: "gone") == 1)
      let gauges = try await fixture.store.gauges()
      #expect(gauges.hooks == 3 && gauges.hookAge > .zero)
    }
  }
}
