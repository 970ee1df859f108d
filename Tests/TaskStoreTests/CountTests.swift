import ReelhaulPostgres
import TaskCore
import TaskStore
import TestKit
import Testing

/// Counts that are maintained. What they are compared with is in the audit, which follows every test of the store.
@Suite struct CountTests {
  @Test("tasks are counted by state, queue and kind through their whole life, folded or not") func life() async throws {
    try await withPostgresStore { store, pool in
      func counts() async throws -> [String] {
        try await store.taskCounts().map { "\($0.state.rawValue) \($0.queue) \($0.kind.rawValue) \($0.tasks)" }.sorted()
      }
      let worker = try await store.register(.sample)
      #expect(try await counts() == [])
      let specs = [TaskSpec.noop(queue: "a"), .noop(queue: "a"), .noop(queue: "b"), .noop(queue: "b")]
      _ = try await store.apply(specs.map(Command.submit))
      #expect(try await counts() == ["queued a noop 2", "queued b noop 2"])
      var claims = try await store.claim(worker, limit: 4)
      #expect(try await counts() == ["running a noop 2", "running b noop 2"])
      claims.sort { $0.spec.queue < $1.spec.queue }
      let outcomes: [Settlement.Outcome] = [.success, .failed(.reset, retryIn: nil), .handBack, .success]
      _ = try await store.settle(
        zip(claims, outcomes).map { Settlement(taskID: $0.spec.id, epoch: $0.epoch, outcome: $1) })
      let after = ["failed a noop 1", "queued b noop 1", "succeeded a noop 1", "succeeded b noop 1"]
      #expect(try await counts() == after)
      _ = try await pool.query("select fold_counts()")
      #expect(try await counts() == after)
      #expect(try await store.counts() == [.failed: 1, .queued: 1, .succeeded: 2])

      let ended = try await store.settledToday().map { "\($0.outcome.rawValue) \($0.queue) \($0.tasks) \($0.bytes)" }
      #expect(ended.sorted() == ["failed a 1 0", "succeeded a 1 1", "succeeded b 1 1"])
      for (claim, action) in zip(claims, [ControlAction.remove(files: false), .retry, .cancel, .remove(files: false)]) {
        let command = Command.control(.init(id: .random(), taskID: claim.spec.id, action: action))
        #expect(try await store.apply([command]) == [.applied])
        try await store.tidy()  // the lanes of succeeded tasks go
      }
      #expect(try await counts() == ["canceled b noop 1", "queued a noop 1"])
      #expect(try await store.settledToday().reduce(0) { $0 + $1.tasks } == 4, "what is removed stays counted")
      #expect(try await store.audit() == [])
    }
  }

  @Test("what is deleted has not moved, whether it is folded or not") func deletions() async throws {
    try await withPostgresStore { store, pool in
      var registration = WorkerRegistration.sample
      registration.kinds.append(.delete)
      let worker = try await store.register(registration)
      var deletion = TaskSpec.noop()
      deletion.kind = .delete
      _ = try await store.apply([deletion, .noop()].map(Command.submit))
      let settled = try await store.claim(worker, limit: 2).map {
        Settlement(taskID: $0.spec.id, epoch: 1, outcome: .succeeded(sha256: nil, bytes: 7))
      }
      #expect(try await store.settle(settled) == [true, true])
      for _ in 0..<2 {
        let today = try await store.settledToday()
        #expect(today.reduce(0) { $0 + $1.tasks } == 2 && today.reduce(0) { $0 + $1.bytes } == 7)
        _ = try await pool.query("select fold_counts()")
      }
    }
  }

  @Test(
    "sizes that add up to more than a number holds are counted as the most, and nothing fails",
    arguments: [Int64.max, .min])
  func huge(bytes: Int64) async throws {
    try await withPostgresStore { store, pool in
      let worker = try await store.register(.sample)
      for isFolded in [false, true, true] {
        _ = try await store.apply((0..<3).map { _ in .submit(.noop()) })
        let claims = try await store.claim(worker, limit: 3)
        let outcome = Settlement.Outcome.succeeded(sha256: nil, bytes: bytes)
        _ = try await store.settle([Settlement(taskID: claims[0].spec.id, epoch: 1, outcome: outcome)])
        let settled = claims.dropFirst().map { Settlement(taskID: $0.spec.id, epoch: 1, outcome: outcome) }
        #expect(try await store.settle(Array(settled)) == [true, true])
        if isFolded { _ = try await pool.query("select fold_counts()") }
        #expect(try await store.settledToday().map(\.bytes) == [bytes])
        _ = try await store.sweep()
      }
      #expect(try await store.counts() == [.succeeded: 9])
    }
  }

  @Test("a lane stays until its counts are folded") func lanes() async throws {
    try await withPostgresStore { store, pool in
      let worker = try await store.register(.sample)
      _ = try await store.apply([.submit(.noop(queue: "once", host: "once.example"))])
      let claims = try await store.claim(worker, limit: 1)
      _ = try await store.settle(claims.map { Settlement(taskID: $0.spec.id, epoch: $0.epoch, outcome: .success) })
      _ = try await store.claim(worker, limit: 1)  // finds the lane empty
      try await store.tidy()
      #expect(try await pool.query("select from lane").count == 0)
      #expect(try await store.taskCounts().map(\.queue) == ["once"])
    }
  }

  @Test("the former name of a kind counts as the kind") func formerNames() async throws {
    try await withPostgresStore { store, pool in
      let (old, new) = (TaskKind(rawValue: "encode"), TaskKind(rawValue: "transcode"))
      var registration = WorkerRegistration.sample
      registration.kinds = [old, new]
      registration.formerNames = [old: new]
      let worker = try await store.register(registration)
      for kind in [old, old, new] {
        var spec = TaskSpec.noop()
        spec.kind = kind
        _ = try await store.apply([.submit(spec)])
      }
      _ = try await store.claim(worker, limit: 2)
      let counts = try await store.taskCounts().map { "\($0.state.rawValue) \($0.kind.rawValue) \($0.tasks)" }
      #expect(counts.sorted() == ["queued transcode 1", "running transcode 2"])
    }
  }

  @Test("statements that nobody foresaw are counted, too") func statements() async throws {
    try await withPostgresStore { store, pool in
      _ = try await store.apply([.submit(.noop())])
      _ = try await pool.query(
        """
        insert into task (id, state, priority, lane_id, spec, finished_at)
        select gen_random_uuid(), 'succeeded', 0, lane_id, spec, now() from task, generate_series(1, 1000)
        """)
      #expect(try await store.counts() == [.queued: 1, .succeeded: 1000])
      _ = try await pool.query("delete from task where id in (select id from task where state = 'succeeded' limit 300)")
      #expect(try await store.counts() == [.queued: 1, .succeeded: 700])
      #expect(try await store.audit() == [])
      _ = try await pool.query("select fold_counts()")
      _ = try await pool.withConnection { try await $0.script("truncate task, ready") }
      #expect(try await store.counts() == [:])
    }
  }

  @Test("the counts of a million tasks are as few rows as those of ten") func flat() async throws {
    try await withPostgresStore { store, pool in
      _ = try await store.apply([.submit(.noop())])
      _ = try await pool.query(
        """
        insert into task (id, state, priority, lane_id, spec, finished_at)
        select gen_random_uuid(), 'succeeded', 0, lane_id, spec, now() from task, generate_series(1, 50000)
        """)
      #expect(try await pool.buffers("select * from effective_count") < 50)
      _ = try await pool.query("select fold_counts()")
      #expect(try await pool.buffers("select * from effective_count") < 50)
      #expect(try await pool.buffers("select * from find_tasks(array['failed'])") < 50)
    }
  }

  @Test("a database that has tasks already is counted when it is upgraded") func upgrade() async throws {
    try await withFirstVersion { store, pool in
      _ = try await Schema.migrator(pool).apply()
      #expect(try await store.counts().values.reduce(0, +) == 15)
      #expect(try await store.audit() == [])
    }
  }
}
