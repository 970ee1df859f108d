import TaskCore
import TaskStore
import TestKit
import Testing

/// Which tasks are claimed, and in which order.
@Suite struct ClaimTests {
  @Test("tasks with higher priority are always claimed first", arguments: StoreKind.allCases)
  func priorityIsStrict(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      for (count, priority) in [(30, 0), (12, 5), (10, 9)] {
        _ = try await fixture.store.apply((0..<count).map { _ in .submit(.noop(priority: priority)) })
      }
      var claims: [[Int: Int]] = []
      for _ in 0..<3 {
        let priorities = try await fixture.store.claim(worker, limit: 20).map(\.spec.priority)
        claims.append(Dictionary(priorities.map { ($0, 1) }, uniquingKeysWith: +))
      }
      #expect(claims == [[9: 10, 5: 10], [5: 2, 0: 18], [0: 12]])
    }
  }

  @Test("a task whose priority changes moves in the order of claims", arguments: StoreKind.allCases)
  func aTaskMovesWithItsPriority(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let specs = (0..<3).map { _ in TaskSpec.noop() }
      _ = try await fixture.store.apply(specs.map(Command.submit))
      #expect(try await fixture.control(.prioritize(10), specs[2].id) == .applied)
      let claim = try #require(try await fixture.store.claim(worker, limit: 1).first)
      #expect(claim.spec.id == specs[2].id && claim.spec.priority == 10)
      // The new priority of a running task takes effect when the task returns to its queue.
      #expect(try await fixture.control(.prioritize(-10), specs[2].id) == .applied)
      try await fixture.settle(claim, .handBack)
      #expect(Set(try await fixture.store.claim(worker, limit: 2).map(\.spec.id)) == Set(specs[..<2].map(\.id)))
    }
  }

  @Test("the oldest task is claimed first, and a task that came back goes before it", arguments: StoreKind.allCases)
  func oldestFirstAndReturnedTasksBeforeThem(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let specs = (0..<5).map { _ in TaskSpec.noop() }
      for spec in specs { try await fixture.submit(spec) }
      let first = try #require(try await fixture.store.claim(worker, limit: 1).first)
      #expect(first.spec.id == specs[0].id)
      #expect(try await fixture.store.claim(worker, limit: 1).map(\.spec.id) == [specs[1].id])
      try await fixture.settle(first, .handBack)
      for expected in [0, 2, 3, 4] {
        #expect(try await fixture.store.claim(worker, limit: 1).map(\.spec.id) == [specs[expected].id])
      }
    }
  }

  @Test("a claim is full as long as there are tasks", arguments: StoreKind.allCases)
  func claimsAreFullAsLongAsThereAreTasks(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      _ = try await fixture.store.apply((0..<230).map { .submit(.noop(queue: "q\($0 % 3)", host: "h\($0 % 7)")) })
      var counts: [Int] = []
      for _ in 0..<4 { counts.append(try await fixture.store.claim(worker, limit: 100).count) }
      #expect(counts == [100, 100, 30, 0])
    }
  }

  @Test("a worker claims only tasks of its kinds and storages", arguments: StoreKind.allCases)
  func workersTakeWhatTheyCanDo(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let download = TaskSpec(id: .random(), kind: .download, source: "https://a/x", destination: "storage://films/x")
      try await fixture.submit(download, .noop())
      let noops = try await fixture.worker(kinds: [.noop], volumes: ["films"])
      let elsewhere = try await fixture.worker(kinds: [.download], volumes: ["default"])
      let able = try await fixture.worker(kinds: [.download], volumes: ["films", "default"])
      #expect(try await fixture.store.claim(elsewhere, limit: 9).isEmpty)
      #expect(try await fixture.store.claim(noops, limit: 9).map(\.spec.kind) == [.noop])
      #expect(try await fixture.store.claim(able, limit: 9).map(\.spec.id) == [download.id])
    }
  }

  @Test("tasks that arrive after an empty claim are claimed", arguments: StoreKind.allCases)
  func tasksAfterAnEmptyClaimAreSeen(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      for _ in 0..<5 {
        #expect(try await fixture.store.claim(worker, limit: 10).isEmpty)
        try await fixture.submit(.noop(), .noop())
        let claims = try await fixture.store.claim(worker, limit: 10)
        try #require(claims.count == 2)
        try await fixture.settle(claims[0], .handBack)
        #expect(try await fixture.store.claim(worker, limit: 10).map(\.spec.id) == [claims[0].spec.id])
      }
    }
  }
}
