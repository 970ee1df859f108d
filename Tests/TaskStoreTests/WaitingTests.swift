import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// Dependencies and times.
@Suite struct WaitingTests {
  @Test("a task runs after all its predecessors", arguments: StoreKind.allCases)
  func aTaskGoesAfterAllItComesAfter(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let a = TaskSpec.noop()
      let b = TaskSpec.noop()
      let c = TaskSpec.noop(after: [a.id, b.id])
      // The tasks are submitted before one of their dependencies is known.
      try await fixture.submit(a, c)
      try await fixture.submit(b)
      let claims = try await fixture.store.claim(worker, limit: 10)
      try #require(claims.count == 2)
      for claim in claims {
        #expect(try await fixture.state(c.id) == .blocked)
        try await fixture.settle(claim, .success)
      }
      #expect(try await fixture.store.claim(worker, limit: 10).map(\.spec.id) == [c.id])
      #expect(try await fixture.events(c.id) == [.submitted, .unblocked, .started])
      let d = TaskSpec.noop(after: [a.id])
      try await fixture.submit(d)
      #expect(try await fixture.state(d.id) == .queued)
    }
  }

  @Test("a failed task blocks its successors until a retry succeeds", arguments: StoreKind.allCases)
  func aFailedTaskKeepsThoseAfterItUntilItIsRetried(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let a = TaskSpec.noop()
      let b = TaskSpec.noop(after: [a.id])
      try await fixture.submit(a, b)
      var claim = try #require(try await fixture.store.claim(worker, limit: 10).first)
      try await fixture.settle(claim, .failed(.reset, retryIn: nil))
      #expect(try await fixture.state(b.id) == .blocked)
      try await fixture.control(.pause, b.id)
      try await fixture.control(.resume, b.id)
      #expect(try await fixture.state(b.id) == .blocked)
      try await fixture.control(.pause, b.id)
      try await fixture.control(.retry, a.id)
      claim = try #require(try await fixture.store.claim(worker, limit: 10).first)
      try await fixture.settle(claim, .success)
      #expect(try await fixture.state(b.id) == .paused)
      try await fixture.control(.resume, b.id)
      #expect(try await fixture.store.claim(worker, limit: 10).map(\.spec.id) == [b.id])
    }
  }

  @Test("of very many successors a settlement releases some, and sweeps the rest; a locked one waits for the next one")
  func veryManySuccessors() async throws {
    try await withPostgresStore { store, pool in
      let worker = try await store.register(.sample)
      let first = TaskSpec.noop()
      let paused = TaskSpec.noop(after: [first.id])
      _ = try await store.apply([.submit(first)])
      for batch in 0..<11 {
        let successors = (0..<500).map { _ in Command.submit(.noop(queue: "q\(batch)", after: [first.id])) }
        _ = try await store.apply(successors)
      }
      _ = try await store.apply([.submit(paused)])
      _ = try await store.apply([.control(Command.Control(id: .random(), taskID: paused.id, action: .pause))])
      func waiting() async throws -> Int {
        try await pool.query("select from task_dependency").count
      }

      let claim = try #require(try await store.claim(worker, limit: 1).first)
      #expect(
        try await store.settle([Settlement(taskID: first.id, epoch: claim.epoch, outcome: .success)]) == [true])
      #expect(try await waiting() == 501)
      #expect(try await store.audit() == [])

      try await pool.withConnection { other in
        _ = try await other.script(
          "begin; select from task where id = (select task_id from task_dependency limit 1) for no key update")
        #expect(try await store.sweep().due == 500)
        #expect(try await waiting() == 1)
        _ = try await other.script("rollback")
      }
      #expect(try await store.sweep().due == 1)
      #expect(try await waiting() == 0)
      #expect(try await pool.query("select from unblocking").isEmpty)
      #expect(try await store.task(paused.id)?.state == .paused)
      #expect(try await pool.query("select from ready").count == 5500)
    }
  }

  /// Each task depends on the one that is submitted after it. The last one releases a thousand.
  @Test("a chain that is submitted backwards runs forwards", arguments: StoreKind.allCases)
  func aChainSubmittedBackwardsRunsForwards(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let ids = (0..<50).map { _ in UniqueID.random() }
      let chain = ids.indices.map { TaskSpec.noop(ids[$0], after: $0 == 0 ? [] : [ids[$0 - 1]]) }
      let crowd = (0..<1000).map { _ in TaskSpec.noop(after: [ids[49], ids[3]]) }
      _ = try await fixture.store.apply(crowd.map(Command.submit))
      for spec in chain.reversed() { try await fixture.submit(spec) }
      for id in ids {
        let claims = try await fixture.store.claim(worker, limit: 10)
        try #require(claims.map(\.spec.id) == [id])
        try await fixture.settle(claims[0], .success)
      }
      #expect(try await fixture.store.claim(worker, limit: 2000).count == 1000)
    }
  }

  /// Tasks that wait for each other in a circle wait until somebody cancels one. A task that depends on a removed task
  /// waits, unless the removed task had succeeded.
  @Test(
    "a ring waits until it is broken, and a removed predecessor counts only if it had succeeded",
    arguments: StoreKind.allCases)
  func ringsAndRemovedTasks(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let ids = (0..<3).map { _ in UniqueID.random() }
      let ring = ids.indices.map { TaskSpec.noop(ids[$0], after: [ids[($0 + 1) % 3]]) }
      try await fixture.submit(ring[0], ring[1], ring[2])
      #expect(try await fixture.store.counts() == [.blocked: 3])
      for id in ids.prefix(2) { #expect(try await fixture.control(.cancel, id) == .applied) }
      #expect(try await fixture.control(.remove, ids[2]) == .applied)
      for id in ids.prefix(2) { #expect(try await fixture.control(.remove, id) == .applied) }

      let done = TaskSpec.noop()
      try await fixture.submit(done)
      try await fixture.settle(try #require(try await fixture.store.claim(worker, limit: 1).first), .success)
      try await fixture.control(.remove, done.id)
      let (after, never) = (TaskSpec.noop(after: [done.id]), TaskSpec.noop(after: [done.id, ids[2]]))
      try await fixture.submit(after, never)
      #expect(try await fixture.state(after.id) == .queued)
      #expect(try await fixture.state(never.id) == .blocked)
    }
  }

  @Test("a scheduled task waits for its time", arguments: StoreKind.allCases)
  func aTaskWaitsForItsTime(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      var spec = TaskSpec.noop()
      spec.notBefore = Timestamp(microseconds: Clocks.realtimeMicroseconds() + 3_600_000_000)
      try await fixture.submit(spec)
      #expect(try await fixture.store.task(spec.id)?.runAt == spec.notBefore)
      #expect(try await fixture.store.claim(worker, limit: 1).isEmpty)
      #expect(try await fixture.store.sweep() == SweepResult(expired: 0, due: 0, workers: 1))
      try await fixture.control(.pause, spec.id)
      try await fixture.control(.resume, spec.id)
      try await fixture.control(.prioritize(2), spec.id)
      #expect(try await fixture.store.task(spec.id)?.runAt == spec.notBefore)
      try await fixture.makeDue(spec.id)
      #expect(try await fixture.store.sweep() == SweepResult(expired: 0, due: 1, workers: 1))
      #expect(try await fixture.store.claim(worker, limit: 1).first?.spec.priority == 2)
    }
  }

  @Test("a task that is submitted paused waits for resume", arguments: StoreKind.allCases)
  func aTaskAddedPausedWaitsForResume(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      var spec = TaskSpec.noop()
      spec.paused = true
      try await fixture.submit(spec)
      #expect(try await fixture.state(spec.id) == .paused)
      try await fixture.control(.resume, spec.id)
      #expect(try await fixture.state(spec.id) == .queued)
    }
  }
}
