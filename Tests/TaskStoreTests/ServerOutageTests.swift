import TaskCore
import TaskStore
import TestKit
import Testing

/// Servers that have served tasks and do so no more.
@Suite struct ServerOutageTests {
  private static let away = TaskFailure(code: .connectFailed, message: "refused", class: .retry)
  private static let late = TaskFailure(code: .timedOut, message: "late", class: .retry)

  private static func failure(
    at server: String = "a.example:443", of host: String = "a.example", _ failure: TaskFailure = away,
    isWhole: Bool = true, isOut: Bool, failing: Duration = .seconds(6)
  ) -> ServerFailure {
    ServerFailure(
      server: server, host: host, isWholeHost: isWhole, failure: failure, isOut: isOut, failing: failing)
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
      #expect(try await store.note(Self.failure(isOut: false)) == false, "nobody knows of an outage")
      #expect(try await Self.use(store)?.outage == nil)
      #expect(try await store.note(Self.failure(isOut: true)))
      #expect(try await store.note(Self.failure(isOut: false)), "another worker need not know it")
      #expect(try await store.note(Self.failure(at: "b.example:443", of: "b.example", isOut: false)) == false)

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

      try await store.endOutages(of: ["b.example:443", "a.example:443"])
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
      // It has never been out for so short a time, but then the next one asks at once.
      #expect(try await store.note(Self.failure(isOut: true, failing: .zero)))
      #expect(try await Self.use(store)?.limit == 0)
      let worker = try await fixture.worker()
      try await eventually("one asks") {
        try await store.putLearnedLimitsInForce()
        return try await store.claim(worker, limit: 5).count == 1
      }
      #expect(try await Self.use(store)?.limit == 1)
      #expect(try await store.claim(worker, limit: 5) == [])
      #expect(try await store.note(Self.failure(isOut: false)))
      #expect(try await Self.use(store)?.limit == 0, "the next one asks later")
      try await store.endOutages(of: ["a.example:443"])
      #expect(try await Self.use(store)?.limit == 4)
    }
  }

  @Test("an outage of a day, or of an hour if the server can be reached, is one no more", arguments: StoreKind.allCases)
  func longest(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      func isOut(_ server: String, _ failure: TaskFailure, for time: Duration) async throws -> Bool {
        _ = try await store.note(Self.failure(at: server, of: server, failure, isOut: true, failing: time))
        return try await store.note(Self.failure(at: server, of: server, failure, isOut: true))
      }
      for host in ["day.example", "long.example", "hour.example"] { try await fixture.submit(.noop(host: host)) }
      #expect(try await isOut("day.example", Self.away, for: .seconds(86_000)))
      #expect(try await !isOut("long.example", Self.away, for: .seconds(86_500)))
      #expect(try await !isOut("hour.example", Self.late, for: .seconds(3700)))
      #expect(try await Self.use(store, "day.example")?.limit == 0)
      for host in ["long.example", "hour.example"] {
        let use = try #require(try await Self.use(store, host))
        #expect(use.limit == nil && !use.isOut && use.outage != nil)
      }
    }
  }

  @Test("a host with another server is not limited", arguments: StoreKind.allCases)
  func others(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      try await fixture.submit(.noop(host: "a.example"))
      #expect(try await store.note(Self.failure(isWhole: false, isOut: true)))
      #expect(try await Self.use(store)?.limit == nil)
      #expect(try await store.note(Self.failure(isOut: false)))
      #expect(try await Self.use(store)?.isOut == false)
    }
  }
}
