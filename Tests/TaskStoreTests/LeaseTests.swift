import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// Leases, and the locks that keep workers, claims and batches apart.
@Suite struct LeaseTests {
  @Test("no sweep takes a task of a worker whose lease is current", arguments: StoreKind.allCases)
  func currentLease(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let spec = TaskSpec.noop()
      try await fixture.submit(spec)
      #expect(try await fixture.store.claim(worker, limit: 1).count == 1)
      #expect(try await fixture.store.sweep().expired == 0)
      #expect(try await fixture.state(spec.id) == .running)
      #expect(try await fixture.store.renew(worker, samples: []).isAlive)
    }
  }

  @Test("a worker whose lease is over claims nothing", arguments: StoreKind.allCases)
  func expiredLease(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      try await fixture.submit(.noop())
      try await fixture.expireLease(worker)
      #expect(try await fixture.store.claim(worker, limit: 1) == [])
    }
  }

  @Test("workers that have just renewed are told from those that have not, or are gone", arguments: StoreKind.allCases)
  func recentRenewals(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      let workers = [try await fixture.worker(), try await fixture.worker(), try await fixture.worker()]
      #expect(try await store.renewed(within: .seconds(600)) == workers)
      try await fixture.expireLease(workers[1])
      #expect(try await store.renewed(within: .seconds(600)) == [workers[0], workers[2]])
      try await store.retire(workers[0])
      #expect(try await store.renewed(within: .seconds(600)) == [workers[2]])
      try await store.leave(workers[2])
      #expect(try await store.renewed(within: .seconds(600)) == [])
    }
  }

  @Test("a worker that renews at this moment is not swept, and the sweep does not wait for it")
  func renewalUnderWay() async throws {
    try await withPostgresStore { store, pool in
      let spec = TaskSpec.noop()
      let worker = try await Self.runs(spec, store)
      _ = try await pool.query("update worker set lease_until = now() - interval '1 s'")
      try await pool.holding("update worker set lease_until = now() + interval '1 h'") { waits in
        let isHeldUp = try await waits("select sweep()")
        #expect(!isHeldUp)
      }
      #expect(try await store.task(spec.id)?.state == .running)
      #expect(try await store.renew(worker, samples: []).isAlive)
      #expect(try await store.sweep().expired == 0)
    }
  }

  @Test("a claim of many tasks passes by none that an older transaction still submits") func olderSubmit() async throws
  {
    try await withPostgresStore { store, pool in
      let worker = try await store.register(.sample)
      try await pool.holding("select pg_current_xact_id()") { _ in
        _ = try await store.apply((0..<60).map { _ in .submit(.noop()) })
        _ = try await pool.query("update lane set head_at = now() - interval '1 s'")
        #expect(try await store.claim(worker, limit: 60).count == 60)
        let passed = try await pool.query(
          "select count(*) from lane where head > pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 20")
        #expect(try passed[0].int64(0) == 0)
      }
    }
  }

  @Test("a lease that a sweep has found over is never renewed, though its tasks are not swept yet")
  func deadWorker() async throws {
    try await withPostgresStore { store, pool in
      let spec = TaskSpec.noop()
      let worker = try await Self.runs(spec, store)
      _ = try await pool.query("update worker set lease_until = now() - interval '1 s'")
      // The sweep skips runs that are locked.
      try await pool.holding("select from run for update") { _ in
        let expired = try await store.sweep().expired
        #expect(expired == 0)
      }
      #expect(try await !store.renew(worker, samples: []).isAlive)
      #expect(try await store.claim(worker, limit: 1) == [])
      #expect(try await store.sweep().expired == 1)
      #expect(try await store.task(spec.id)?.state == .queued)
    }
  }

  @Test("a task that somebody holds does not keep the others of a dead worker waiting")
  func heldTask() async throws {
    try await withPostgresStore { store, pool in
      let (held, other) = (TaskSpec.noop(), TaskSpec.noop())
      for spec in [held, other] { _ = try await Self.runs(spec, store) }
      _ = try await pool.query("update worker set lease_until = now() - interval '1 s'")
      try await pool.holding("select from task where id = '\(held.id)' for no key update") { _ in
        let expired = try await store.sweep().expired
        #expect(expired == 1)
      }
      #expect(try await store.task(held.id)?.state == .running)
      #expect(try await store.task(other.id)?.state == .queued)
      #expect(try await store.sweep().expired == 1)
      #expect(try await store.task(held.id)?.state == .queued)
    }
  }

  @Test("after the database's clock was set back, a dead worker's lease ends within a term; a living worker's goes on")
  func clockSetBack() async throws {
    try await withPostgresStore { store, pool in
      let (dead, alive) = (TaskSpec.noop(), TaskSpec.noop())
      _ = try await Self.runs(dead, store)
      let worker = try await Self.runs(alive, store)
      _ = try await pool.query("update worker set lease_until = lease_until + interval '1 d'")
      // One that is locked, as by a renewal, is left alone.
      try await pool.holding("select from worker for update") { waits in
        let isHeldUp = try await waits("select sweep()")
        #expect(!isHeldUp)
      }
      #expect(try await pool.query("select from worker where lease_until > now() + interval '23 h'").count == 2)
      #expect(try await store.sweep().expired == 0)
      #expect(
        try await pool.query(
          "select from worker where lease_until <= clock_timestamp() + make_interval(secs => lease_seconds)"
        ).count == 2)

      _ = try await pool.query(
        "update worker set lease_until = lease_until - make_interval(secs => lease_seconds + 1) where id <> $1",
        .int32(worker.rawValue))
      #expect(try await store.renew(worker, samples: []).isAlive)
      #expect(try await store.sweep().expired == 1)
      #expect(try await store.task(dead.id)?.state == .queued)
      #expect(try await store.task(alive.id)?.state == .running)
    }
  }

  @Test("a run cannot change the limits that it counts for")
  func runsStay() async throws {
    try await withPostgresStore { store, pool in
      _ = try await Self.runs(.noop(), store)
      let error = await #expect(throws: PostgresError.self) {
        _ = try await pool.query("update run set host_id = kind_id")
      }
      #expect(error?.message.contains("cannot change its buckets") == true)
    }
  }

  @Test(
    "a call that must not run at the same time as another one waits",
    arguments: [
      ("select pass_gate()", "select * from claim(1, 1, 99)"),
      ("select pass_gate()", "select set_limit('total', '', 5)"),
      ("select pass_gate()", "select set_weight('default', 2)"),
      ("select * from claim(1, 1, 99)", "select * from claim(1, 1, 99)"),
      // A batch with dependencies or removals, and any other batch.
      ("select begin_apply(true, '{}')", "select begin_apply(false, '{}')"),
      ("select begin_apply(false, '{}')", "select begin_apply(true, '{}')"),
      ("select begin_creation()", "select begin_creation()"),
      // One transaction that has locked a task's row, and one that would change it.
      ("select lock_tasks((select array_agg(id) from task))", "select lock_tasks((select array_agg(id) from task))"),
      (
        """
        select control(array[gen_random_uuid()], (select array_agg(id) from task), array['cancel'], array[null::smallint],
                       array[false], array[null])
        """, "select lock_tasks((select array_agg(id) from task))"
      ),
      // A lane into which tasks are put, and its deletion.
      ("select hold_lanes((select array_agg(id) from lane))", "select from lane for update"),
    ])
  func exclusion(held: String, waiting: String) async throws {
    try await withPostgresStore { store, pool in
      _ = try await Self.runs(.noop(), store)
      try await pool.holding(held) { waits in
        let isHeldUp = try await waits(waiting)
        #expect(isHeldUp)
      }
    }
  }

  @Test("a task that was submitted while a claim waited for its turn starts after it was created")
  func startsAfterItWasCreated() async throws {
    try await withPostgresStore { store, pool in
      let worker = try await store.register(.sample)
      let spec = TaskSpec.noop()
      var claims: Task<[Claim], any Error>?
      try await pool.holding("select pass_gate()") { _ in
        claims = Task { try await store.claim(worker, limit: 1) }
        let waiting = "select from pg_stat_activity where wait_event = 'advisory' and query like '%claim_tasks%'"
        while try await pool.query(PostgresStatement(waiting)).isEmpty {
          try await Task.sleep(for: .milliseconds(5))
        }
        _ = try await store.apply([.submit(spec)])
      }
      #expect(try await claims?.value.count == 1)
      let task = try #require(try await store.task(spec.id))
      let started = try #require(task.startedAt)
      #expect(started >= task.createdAt)
      #expect(try await store.takeEvents(limit: 10).map(\.at) == [task.createdAt, started])
    }
  }

  @Test("a task starts although the two that it comes after end at the same time") func lastOnesEnd() async throws {
    try await withPostgresStore { store, pool in
      let (a, b) = (TaskSpec.noop(), TaskSpec.noop())
      for spec in [a, b] { _ = try await Self.runs(spec, store) }
      let dependent = TaskSpec.noop(after: [a.id, b.id])
      _ = try await store.apply([.submit(dependent)])
      var settled: Task<[Bool], any Error>?
      try await pool.holding(Self.success(of: a)) { _ in
        settled = Task { try await store.settle([Settlement(taskID: b.id, epoch: 1, outcome: .success)]) }
        try await eventually("it waits", within: .seconds(30)) { try await pool.hasWaiter() }
      }
      #expect(try await settled?.value == [true])
      #expect(try await store.task(dependent.id)?.state == .queued)
    }
  }

  @Test("a task starts although the one that it comes after ends while it is submitted") func endsMeanwhile()
    async throws
  {
    try await withPostgresStore { store, pool in
      let (a, isDone) = (TaskSpec.noop(), Lock(false))
      _ = try await Self.runs(a, store)
      let dependent = TaskSpec.noop(after: [a.id])
      var applied: Task<[CommandOutcome], any Error>?
      try await pool.holding(Self.success(of: a)) { _ in
        applied = Task {
          defer { isDone.withLock { $0 = true } }
          return try await store.apply([.submit(dependent)])
        }
        try await eventually("it waits, or need not", within: .seconds(30)) {
          if isDone.withLock({ $0 }) { return true }
          return try await pool.hasWaiter()
        }
      }
      let outcomes = try await applied?.value
      #expect(outcomes == [CommandOutcome.applied])
      #expect(try await store.task(dependent.id)?.state == .queued)
    }
  }

  @Test("two batches without dependencies go side by side")
  func batchesShare() async throws {
    try await withPostgresStore { _, pool in
      try await pool.holding("select begin_apply(false, '{}')") { waits in
        let isHeldUp = try await waits("select begin_apply(false, '{}')")
        #expect(!isHeldUp)
      }
    }
  }

  /// The statement that ends the first run of a task with success.
  private static func success(of spec: TaskSpec) -> String {
    """
    select settle(array['\(spec.id)']::uuid[], array[1], array['succeeded'], array[null]::bigint[],
                  array[null]::bytea[], array[1]::bigint[], array[null]::json[], array[null]::text[],
                  array[null]::text[], array[null]::text[], array[null]::int[])
    """
  }

  /// Registers a worker that runs the task `spec`.
  private static func runs(_ spec: TaskSpec, _ store: PostgresStore) async throws -> WorkerID {
    let worker = try await store.register(.sample)
    _ = try await store.apply([.submit(spec)])
    #expect(try await store.claim(worker, limit: 1).count == 1)
    return worker
  }
}

extension PostgresPool {
  /// Whether a session waits for a lock.
  fileprivate func hasWaiter() async throws -> Bool {
    try await !query("select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")
      .isEmpty
  }

  /// Runs `body` while a transaction that has run `held` is open, and then commits it. `waits` returns whether a
  /// statement of another session would wait for one of its locks.
  fileprivate func holding(
    _ held: String, _ body: (_ waits: (String) async throws -> Bool) async throws -> Void
  ) async throws {
    try await withConnection { holder in
      _ = try await holder.script("begin; \(held)")
      do {
        try await body { statement in
          try await withConnection { other in
            do {
              // The holder's transaction does not end meanwhile, so a longer wait would not help.
              _ = try await other.script("begin; set local lock_timeout = '100ms'; \(statement)")
              _ = try await other.script("rollback")
              return false
            } catch let error as PostgresError where error.sqlState == "55P03" {
              _ = try await other.script("rollback")
              return true
            }
          }
        }
      } catch {
        _ = try? await holder.script("rollback")
        throw error
      }
      _ = try await holder.script("commit")
    }
  }
}
