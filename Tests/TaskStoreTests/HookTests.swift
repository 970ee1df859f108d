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
    try await fixture.store.claimHooks(worker, limit: limit, perHost: perHost, besides: underWay)
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
      let next = try await fixture.store.claimHooks(other, limit: 10, perHost: 10, besides: [:])
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
      let rest = try await fixture.store.claimHooks(worker, limit: 10, perHost: 4, besides: underWay)
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
      try await fixture.store.giveUpHook(task, sequence: 1, error: "gone")
      #expect(try await Self.claim(fixture, worker) == ["\(task) 2"])
      let shown = try await fixture.store.undeliveredHooks(of: task)
      #expect(shown.map { $0.gaveUpAt != nil } == [true, false] && shown.first?.error == "gone")
      // A repeated round of the relay does not bring it back.
      try await fixture.store.addHooks([Self.event(task, 1)])
      try await fixture.store.finishHook(task, sequence: 2)
      #expect(try await Self.claim(fixture, worker) == [])
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
}
