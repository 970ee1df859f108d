import TaskCore
import TaskStore
import TestKit
import Testing

/// Tasks that use two storages, and limits that handlers declare.
@Suite struct LimitTests {
  private static func copy(from source: String = "a", to destination: String = "b") -> TaskSpec {
    TaskSpec(
      id: .random(), kind: .noop, source: "storage://\(source)/x", destination: "storage://\(destination)/y")
  }

  @Test("a task of two storages is for a worker that has both", arguments: StoreKind.allCases)
  func both(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let spec = Self.copy()
      try await fixture.submit(spec)
      let backlog = try await fixture.store.backlog()
      #expect(backlog.storages == ["a", "b"])
      #expect(backlog.pairs == [StoragePair(source: "a", destination: "b")])
      for volumes in [[], ["a"], ["b"]] {
        let worker = try await fixture.worker(volumes: volumes)
        #expect(try await fixture.store.claim(worker, limit: 1) == [])
      }
      #expect(
        try await fixture.store.task(spec.id)?.error?.message == "no running worker has both storages, b and a")
      let able = try await fixture.worker(volumes: ["a", "b"])
      #expect(try await fixture.store.task(spec.id)?.error == nil)
      #expect(try await fixture.store.claim(able, limit: 1).map(\.spec.id) == [spec.id])
    }
  }

  @Test("the storage that is missing is named", arguments: StoreKind.allCases)
  func missing(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let spec = Self.copy()
      try await fixture.submit(spec)
      _ = try await fixture.worker(volumes: ["b"])
      #expect(try await fixture.store.task(spec.id)?.error?.message == "no running worker has the storage a")
    }
  }

  @Test("a task of two storages needs room in both, and counts in both", arguments: StoreKind.allCases, ["a", "b"])
  func room(_ kind: StoreKind, limited: String) async throws {
    try await withStore(kind) { fixture in
      try await fixture.store.setLimit(.storage, name: limited, to: 3)
      let worker = try await fixture.worker(volumes: ["a", "b", "c"])
      for _ in 0..<4 {
        try await fixture.submit(Self.copy(), Self.copy(from: "b", to: "a"), Self.copy(from: "a", to: "a"))
      }
      let claims = try await fixture.store.claim(worker, limit: 50)
      let touching = claims.count { LaneKey($0.spec).storages.contains(limited) }
      #expect(touching == 3)
      let use = try await fixture.store.limits().first { $0.scope == .storage && $0.name == limited }
      #expect(use?.running == 3)
      // Besides these, only tasks that do not use the full storage may run.
      #expect(claims.count == (limited == "b" ? 7 : 3))
      for claim in claims { try await fixture.settle(claim, .success) }
      #expect(try await fixture.store.limits().allSatisfy { $0.running == 0 })
      #expect(try await fixture.store.claim(worker, limit: 50).count == (limited == "b" ? 3 : 3))
    }
  }

  @Test("a limit that a handler declares holds over three workers", arguments: StoreKind.allCases)
  func declared(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      var workers: [WorkerID] = []
      for _ in 0..<3 { workers.append(try await fixture.store.register(.declaring(2))) }
      try await fixture.submit(.noop(), .noop(), .noop(), .noop(), .noop())
      var claims: [Claim] = []
      for worker in workers { claims += try await fixture.store.claim(worker, limit: 5) }
      #expect(claims.count == 2)
      let use = try #require(try await fixture.store.limits().first { $0.scope == .kind })
      #expect(use.limit == 2 && use.declared == 2 && use.running == 2)
      try await fixture.settle(claims[0], .success)
      claims = []
      for worker in workers { claims += try await fixture.store.claim(worker, limit: 5) }
      #expect(claims.count == 1)
    }
  }

  @Test(
    "what workers learn of a host limits the fleet, while all that have its tasks tell it",
    arguments: StoreKind.allCases)
  func learned(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      let (first, second) = (try await fixture.worker(), try await fixture.worker())
      func tell(_ worker: WorkerID, _ limits: [String: HostLimit]) async throws -> Set<String> {
        try await store.tell(worker, hostLimits: limits)
        try await store.putLearnedLimitsInForce()
        return try await store.limitedHosts()
      }
      func use() async throws -> LimitUse? { try await store.limits().first { $0.isOf(.host, "a.example") } }
      // It cannot run them, and counts for nothing.
      _ = try await fixture.worker(kinds: [.download])
      for _ in 0..<20 { try await fixture.submit(.noop(host: "a.example")) }
      #expect(try await store.claim(first, limit: 4).count == 4)

      #expect(try await tell(first, ["a.example": .init(3)]) == ["a.example"])
      #expect(try await use()?.limit == 6, "the other worker can make use of as many")
      #expect(try await use()?.learned == 6)
      #expect(try await store.claim(second, limit: 20).count == 2)
      // The second worker has tasks of the host, and none of them stands in line.
      #expect(try await tell(first, ["a.example": .init(3)]) == [])
      #expect(try await use()?.limit == nil)
      #expect(try await tell(second, ["a.example": .init(4)]) == ["a.example"])
      #expect(try await use()?.limit == 7)

      // It is refused what the other gets.
      let refused = HostLimit(1, isRefusing: true)
      #expect(try await tell(second, ["a.example": refused]) == ["a.example"])
      #expect(try await use()?.limit == 4)
      #expect(try await tell(first, ["a.example": refused]) == [])
      #expect(try await use()?.limit == nil, "it is refused to all: nothing is known")
      _ = try await tell(first, ["a.example": .init(3)])

      try await store.setLimit(.host, name: "a.example", to: 50)
      #expect(try await tell(second, ["a.example": .init(2)]) == [])
      let both = try #require(try await use())
      #expect(both.limit == 50 && both.learned == 5, "an operator's limit holds")
      try await store.setLimit(.host, name: "a.example", to: nil)
      #expect(try await use()?.limit == 5)

      try await fixture.expireLease(first)
      try await store.putLearnedLimitsInForce()
      #expect(try await use()?.limit == 2, "only the second worker lives")
      #expect(try await tell(second, [:]) == [])
      let left = try await use()
      #expect(left?.limit == nil && left?.learned == nil)
      #expect(try await store.audit() == [])
    }
  }

  @Test("a limit counts a kind and its former names together", arguments: StoreKind.allCases)
  func formerNames(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      // What began under the old name before anybody knew of the new one counts, too.
      let old = try await store.register(.declaring(7, "old"))
      try await fixture.submit(.named("old"))
      let before = try await store.claim(old, limit: 5)
      #expect(before.count == 1)
      let new = try await store.register(.declaring(3, "new", formerly: ["old", "older"]))
      for _ in 0..<3 { try await fixture.submit(.named("old"), .named("new"), .named("older")) }
      let first = try await store.claim(old, limit: 1)
      #expect(first.map(\.spec.kind.rawValue) == ["old"])
      let second = try await store.claim(new, limit: 50)
      #expect(second.count == 1)
      #expect(try await store.demand(on: new) == nil, "nobody asks for what has no place")
      #expect(try await store.claim(old, limit: 50) == [])

      let use = try #require(try await store.limits().first { $0.isOf(.kind, "older") })
      #expect(use.name == "new" && use.limit == 3 && use.declared == 3 && use.formerNames == ["old", "older"])
      for claim in before + first + second { try await fixture.settle(claim, .success) }
      let all = try await store.claim(new, limit: 50)
      #expect(all.count == 3)
      #expect(try await store.limits().first { $0.isOf(.kind, "new") }?.running == 3)
      #expect(try await store.audit() == [])

      // A worker that knows the kind by its old name alone, and starts last, does not split it again.
      _ = try await store.register(.declaring(9, "old"))
      #expect(try await store.claim(new, limit: 50) == [])
      for claim in all { try await fixture.settle(claim, .success) }
      #expect(try await store.claim(new, limit: 50).count == 3)
      #expect(try await store.audit() == [])
    }
  }

  @Test("former names of a kind count for its limit after a tidy, too") func tidiedNames() async throws {
    try await withPostgresStore { store, _ in
      let worker = try await store.register(.declaring(3, "new", formerly: ["old"]))
      try await store.tidy()
      _ = try await store.apply((0..<3).flatMap { _ in [.submit(.named("old")), .submit(.named("new"))] })
      #expect(try await store.claim(worker, limit: 50).count == 3)
    }
  }

  @Test("an operator's limit for a former name is the limit of the kind", arguments: StoreKind.allCases)
  func formerLimits(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      func limit() async throws -> Int? { try await store.limits().first { $0.isOf(.kind, "new") }?.limit }
      try await store.setLimit(.kind, name: "old", to: 1)
      let worker = try await store.register(.declaring(3, "new", formerly: ["old"]))
      #expect(try await limit() == 1)
      try await fixture.submit(.named("old"), .named("old"), .named("new"), .named("new"))
      #expect(try await store.claim(worker, limit: 50).count == 1)
      try await store.setLimit(.kind, name: "old", to: 2)
      #expect(try await store.claim(worker, limit: 50).count == 1)
      try await store.setLimit(.kind, name: "old", to: nil)
      #expect(try await limit() == 3)

      // The name goes on, and comes back.
      _ = try await store.register(.declaring(4, "newest", formerly: ["new"]))
      #expect(try await limit() == 4)
      #expect(try await store.limits().first { $0.isOf(.kind, "old") }?.name == "newest")
      _ = try await store.register(.declaring(5, "old", formerly: ["new", "newest"]))
      let use = try #require(try await store.limits().first { $0.isOf(.kind, "newest") })
      #expect(use.name == "old" && use.limit == 5 && use.formerNames == ["new", "newest"])
      #expect(try await store.audit() == [])
    }
  }

  @Test("an operator's limit goes before a declared one, the latest of which holds", arguments: StoreKind.allCases)
  func operators(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      func limit() async throws -> Int? {
        try await fixture.store.limits().first { $0.scope == .kind && $0.name == "noop" }?.limit
      }
      _ = try await fixture.store.register(.declaring(2))
      try await fixture.store.setLimit(.kind, name: "noop", to: 4)
      #expect(try await limit() == 4)
      _ = try await fixture.store.register(.declaring(3))
      #expect(try await limit() == 4)
      try await fixture.store.setLimit(.kind, name: "noop", to: nil)
      #expect(try await limit() == 3)
      _ = try await fixture.store.register(.declaring(nil))
      #expect(try await limit() == nil)
    }
  }
}

extension WorkerRegistration {
  fileprivate static func declaring(
    _ limit: Int?, _ kind: String = "noop", formerly: [String] = []
  ) -> WorkerRegistration {
    let (kind, former) = (TaskKind(rawValue: kind), formerly.map(TaskKind.init))
    return WorkerRegistration(
      boot: .random(), host: "test", pid: 1, leaseSeconds: 3600, kinds: [kind] + former, volumes: [:],
      kindLimits: limit.map { [kind: $0] } ?? [:],
      formerNames: Dictionary(uniqueKeysWithValues: former.map { ($0, kind) }))
  }
}

extension TaskSpec {
  fileprivate static func named(_ kind: String) -> TaskSpec {
    TaskSpec(id: .random(), kind: TaskKind(rawValue: kind), source: "noop:", destination: nil)
  }
}
