import ReelhaulPostgres
import TaskCore
import TaskStore
import TestKit
import Testing

/// Servers that have served tasks and do so no more.
@Suite struct ServerOutageTests {
  private static let away = TaskFailure(code: .connectFailed, message: "refused", class: .retry)
  private static let late = TaskFailure(code: .timedOut, message: "late", class: .retry)

  private static func server(_ host: String = "a.example", port: Int = 443) -> TaskServer {
    TaskServer(host: host, name: "\(host):\(port)")
  }

  private static func note(
    _ store: any TaskStore, at server: TaskServer = server(), _ failure: TaskFailure = away, isWhole: Bool = true,
    isOut: Bool, failing: Duration = .seconds(6)
  ) async throws -> Bool {
    try await store.note([
      ServerFailure(
        server: server, isWholeHost: isWhole, failure: failure, isOut: isOut,
        isUnreachable: failure.code.signOfOutage == .unreachable, failing: failing)
    ])[0]
  }

  private static func use(_ store: any TaskStore, _ host: String = "a.example") async throws -> LimitUse? {
    try await store.putLearnedLimitsInForce()
    return try await store.limits().first { $0.isOf(.host, host) }
  }

  @Test("a server is out once a worker knows it, for all workers, until one is served", arguments: StoreKind.allCases)
  func known(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      for _ in 0..<5 { try await fixture.submit(.noop(host: "a.example")) }
      #expect(try await Self.note(store, isOut: false) == false, "nobody knows of an outage")
      #expect(try await Self.note(store, isOut: true, failing: .milliseconds(4900)) == false, "it may be back at once")
      #expect(try await Self.use(store)?.outage == nil)
      #expect(try await Self.note(store, isOut: true))
      #expect(try await Self.note(store, isOut: false), "another worker need not know it")
      #expect(try await Self.note(store, at: Self.server("b.example"), isOut: false) == false)

      let use = try #require(try await Self.use(store))
      #expect(use.limit == 0 && use.isOut)
      let outage = try #require(use.outage)
      #expect(outage.code == .connectFailed && outage.message == "refused")
      let age = try await store.time().microseconds - outage.since.microseconds
      #expect((6_000_000..<60_000_000).contains(age))
      let wait = outage.probeAt.microseconds - outage.since.microseconds
      #expect((11_900_000..<13_000_000).contains(wait), "it is asked again after as long as it has been out")
      let worker = try await fixture.worker()
      #expect(try await store.claim(worker, limit: 5) == [])

      try await store.endOutages(of: [Self.server("b.example"): .zero, Self.server(): .zero])
      #expect(try await Self.use(store) == nil)
      #expect(try await store.claim(worker, limit: 5).count == 5)
    }
  }

  @Test("when it is time, one task asks, whatever limit an operator has set", arguments: StoreKind.allCases)
  func probe(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      for _ in 0..<5 { try await fixture.submit(.noop(host: "a.example")) }
      try await store.setLimit(.host, name: "a.example", to: 4)
      #expect(try await Self.note(store, isOut: true, failing: .seconds(5)))
      #expect(try await Self.use(store)?.limit == 0)
      let worker = try await fixture.worker()
      var asking = 0
      try await eventually("one asks") {
        try await store.putLearnedLimitsInForce()
        asking = try await store.claim(worker, limit: 5).count
        return asking > 0
      }
      #expect(asking == 1)
      #expect(try await Self.use(store)?.limit == 1)
      #expect(try await store.claim(worker, limit: 5) == [])
      #expect(try await Self.note(store, isOut: false))
      #expect(try await Self.use(store)?.limit == 0, "the next one asks later")
      try await store.endOutages(of: [Self.server(): .zero])
      #expect(try await Self.use(store)?.limit == 4)
    }
  }

  @Test("an outage of a day, or of an hour if the server can be reached, is one no more", arguments: StoreKind.allCases)
  func longest(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      func isOut(_ host: String, _ failure: TaskFailure, for time: Duration) async throws -> Bool {
        _ = try await Self.note(store, at: Self.server(host), failure, isOut: true, failing: time)
        return try await Self.note(store, at: Self.server(host), failure, isOut: true)
      }
      for host in ["day.example", "long.example", "hour.example"] { try await fixture.submit(.noop(host: host)) }
      #expect(try await isOut("day.example", Self.away, for: .seconds(86_000)))
      #expect(try await !isOut("long.example", Self.away, for: .seconds(86_500)))
      #expect(try await !isOut("hour.example", Self.late, for: .seconds(3700)))
      #expect(try await Self.use(store, "day.example")?.limit == 0)
      for host in ["long.example", "hour.example"] {
        #expect(try await Self.use(store, host) == nil)
      }
    }
  }

  @Test("a host with another server that serves is not limited", arguments: StoreKind.allCases)
  func others(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      for host in ["a.example", "b.example"] { try await fixture.submit(.noop(host: host)) }
      #expect(try await Self.note(store, isWhole: false, isOut: true))
      #expect(try await Self.use(store)?.limit == nil)
      #expect(try await Self.note(store, isOut: false))
      #expect(try await Self.use(store)?.isOut == false)

      #expect(try await Self.note(store, at: Self.server("b.example"), isOut: true))
      #expect(try await Self.use(store, "b.example")?.isOut == true)
      try await store.endOutages(of: [Self.server("b.example", port: 8443): .zero])
      let use = try #require(try await Self.use(store, "b.example"))
      #expect(use.outage != nil && !use.isOut && use.limit == nil)
    }
  }

  @Test("it is not the server that is out if another worker has seen it serve meanwhile", arguments: StoreKind.allCases)
  func servesOthers(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      try await fixture.submit(.noop(host: "a.example"))
      #expect(try await Self.note(store, isOut: true))
      try await store.endOutages(of: [Self.server(): .seconds(7)])
      #expect(try await Self.use(store)?.isOut == true, "what was before the outage does not end it")
      #expect(try await Self.note(store, isOut: true))
      try await store.endOutages(of: [Self.server(): .milliseconds(5500)])
      #expect(try await !Self.note(store, isOut: true))
      #expect(try await Self.use(store) == nil)
      #expect(try await !Self.note(store, isOut: true, failing: .milliseconds(900)), "it may be back at once")
      #expect(try await Self.note(store, isOut: true, failing: .seconds(1)), "it goes again, which is known sooner")
      #expect(try await Self.use(store)?.isOut == true)
      try await store.endOutages(of: [Self.server(): .zero])
      try await Task.sleep(for: .milliseconds(1500))
      #expect(try await !Self.note(store, isOut: true, failing: .seconds(1)), "others may be served")
    }
  }

  @Test(
    "a worker whose failures began before another one was served knows of an outage that began since",
    arguments: StoreKind.allCases)
  func served(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      for (server, age) in [("a.example", 20), ("b.example", 40)] {
        #expect(try await Self.note(store, at: Self.server(server), isOut: true, failing: .seconds(100)))
        try await store.endOutages(of: [Self.server(server): .seconds(age)])
      }
      #expect(try await !Self.note(store, isOut: true, failing: .seconds(100)), "it may be the worker that is cut off")
      #expect(try await Self.note(store, at: Self.server("b.example"), isOut: true, failing: .seconds(100)))
      #expect(try await Self.note(store, at: Self.server("b.example"), isOut: false), "for all")
    }
  }

  @Test(
    "a server that could not be reached does not count as reached after a failure of another kind",
    arguments: StoreKind.allCases)
  func unreachable(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      #expect(try await Self.note(store, isOut: true, failing: .seconds(3700)))
      try await Task.sleep(for: .milliseconds(1100))
      #expect(try await Self.note(store, Self.late, isOut: false))
      #expect(try await Self.note(store, isOut: false))
    }
  }

  @Test("a limit that an operator sets in an outage holds after it", arguments: StoreKind.allCases)
  func operators(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      try await fixture.submit(.noop(host: "a.example"))
      #expect(try await Self.note(store, isOut: true))
      #expect(try await Self.use(store)?.limit == 0)
      try await store.setLimit(.host, name: "a.example", to: 7)
      #expect(try await store.limits().first { $0.isOf(.host, "a.example") }?.limit == 0)
      #expect(try await Self.note(store, isOut: false), "and it is still out")
      try await store.endOutages(of: [Self.server(): .zero])
      #expect(try await Self.use(store)?.limit == 7)
    }
  }

  @Test("failures of one call have their own answers, and calls of many workers do not wait for each other in a circle")
  func batches() async throws {
    try await withPostgresStore { store, _ in
      let servers = (0..<20).map { Self.server("h\($0).example") }
      func failures(_ servers: [TaskServer]) -> [ServerFailure] {
        servers.map {
          ServerFailure(
            server: $0, isWholeHost: true, failure: Self.away, isOut: $0.host.hasSuffix("2.example"),
            isUnreachable: true, failing: .seconds(6))
        }
      }
      let answers = try await store.note(failures(servers))
      #expect(answers == servers.map { $0.host.hasSuffix("2.example") })
      try await withThrowingTaskGroup(of: Void.self) { group in
        for round in 0..<40 {
          group.addTask { _ = try await store.note(failures(round % 2 == 0 ? servers : servers.reversed())) }
          group.addTask {
            let some = servers.shuffled().prefix(7)
            try await store.endOutages(of: Dictionary(uniqueKeysWithValues: some.map { ($0, .zero) }))
          }
        }
        try await group.waitForAll()
      }
    }
  }

  @Test("where nobody asks for minutes, nothing is limited") func nobodyAsks() async throws {
    try await withPostgresStore { store, pool in
      _ = try await store.apply([.submit(.noop(host: "a.example"))])
      #expect(try await Self.note(store, isOut: true))
      #expect(try await Self.use(store)?.isOut == true)
      _ = try await pool.query(
        "update server_outage set since = since - interval '4 min', failed_at = failed_at - interval '4 min'")
      #expect(try await Self.use(store)?.limit == nil)
      #expect(try await Self.note(store, isOut: false), "and it is still out")
    }
  }
}
