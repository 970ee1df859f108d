import MemoryTaskStore
import ReelhaulPostgres
import TaskCore
import TaskStore
import TestKit
import Testing

/// What autoscalers and alerts are told of the store.
@Suite struct GaugeTests {
  private let noops = FleetGauges.Key(queue: "default", kind: .noop)

  @Test(
    "only what a claim would find counts as runnable, and each other task that waits has one reason",
    arguments: StoreKind.allCases)
  func everyWaitingTaskIsCountedOnce(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      let empty = try await store.gauges()
      #expect(empty == FleetGauges(events: 0))
      _ = try await fixture.worker()
      try await store.setLimit(.host, name: "full.example", to: 2)
      try await store.setLimit(.queue, name: "narrow", to: 3)
      let first = TaskSpec.noop()
      try await fixture.submit(first, .noop(), .noop(priority: 5))
      // A limit is one for all priorities.
      for priority in [0, 1] {
        for _ in 0..<3 { try await fixture.submit(.noop(priority: priority, host: "full.example")) }
        for _ in 0..<2 { try await fixture.submit(.noop(priority: priority, queue: "narrow")) }
      }
      try await fixture.submit(.noop(after: [first.id]), .noop(notBefore: .later))
      var paused = TaskSpec.noop()
      paused.paused = true
      try await fixture.submit(paused)
      var elsewhere = TaskSpec.noop(queue: "elsewhere", destination: "storage://absent/a")
      try await fixture.submit(elsewhere)
      elsewhere.id = .random()
      elsewhere.destination = nil
      elsewhere.kind = TaskKind(rawValue: "transcode")
      try await fixture.submit(elsewhere)

      let gauges = try await store.gauges()
      #expect(gauges.runnable[noops] == 3 + 2)
      #expect(gauges.runnable[.init(queue: "narrow", kind: .noop)] == 3)
      #expect(gauges.runnable.values.reduce(0, +) == 8)
      #expect(
        gauges.held.filter { $0.value > 0 } == [.cap: 4 + 1, .pause: 1, .schedule: 1, .dependency: 1, .worker: 2])
      #expect(gauges.tasks[.queued]?[noops] == 9 + 1)
      #expect(gauges.tasks[.paused] == [noops: 1] && gauges.tasks[.blocked] == [noops: 1])
      #expect(Set(gauges.oldestRunnable.keys) == ["default", "narrow"])
      #expect(gauges.events > 0 && gauges.eventAge >= .zero)
    }
  }

  @Test("a task that was handed back has not been runnable since its submit")
  func ages() async throws {
    try await withPostgresStore { store, pool in
      let worker = try await store.register(.sample)
      _ = try await store.apply([.submit(.noop())])
      let claim = try #require(try await store.claim(worker, limit: 1).first)
      _ = try await store.settle([Settlement(taskID: claim.spec.id, epoch: claim.epoch, outcome: .handBack)])
      _ = try await pool.query("update task set created_at = created_at - interval '1 h'")
      let age = try #require(try await store.gauges().oldestRunnable["default"])
      #expect(age < .seconds(600), "\(age)")
    }
  }

  @Test(
    "tasks with a worker and failed ones are counted by their state, and succeeded ones are not",
    arguments: StoreKind.allCases)
  func owned(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      let worker = try await fixture.worker()
      try await fixture.submit(.noop(), .noop(), .noop())
      let claims = try await store.claim(worker, limit: 3)
      try await fixture.settle(claims[0], .success)
      try await fixture.settle(claims[1], .failed(.reset, retryIn: nil))
      let gauges = try await store.gauges()
      #expect(gauges.tasks == [.running: [noops: 1], .failed: [noops: 1]])
      #expect(gauges.runnable.values.allSatisfy { $0 == 0 } && gauges.oldestRunnable.isEmpty)
    }
  }

  @Test("a task that waits longer is older", arguments: StoreKind.allCases)
  func age(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      _ = try await fixture.worker()
      try await fixture.submit(.noop(queue: "a"))
      let age = try await fixture.store.gauges().oldestRunnable["a"]
      try await eventually("it grows") {
        let later = try await fixture.store.gauges().oldestRunnable["a"]
        return later ?? .zero > age ?? .zero
      }
      // The oldest, also if it is not the first that would run.
      try await fixture.submit(.noop(priority: 9, queue: "a"))
      let both = try await fixture.store.gauges().oldestRunnable["a"]
      #expect(both ?? .zero > age ?? .zero)
    }
  }

  @Test("events are counted without reading their arrays, whatever their number")
  func events() async throws {
    try await withPostgresStore { store, pool in
      for count in [1, 2, 5, 7, 8, 200, 3000] {
        _ = try await pool.withConnection {
          try await $0.script(
            """
            truncate outbox;
            insert into outbox (kind, task_ids, sequences)
            select 'removed', array_agg(gen_random_uuid()), array_agg(1) from generate_series(1, \(count))
            """)
        }
        let gauges = try await store.gauges()
        #expect(gauges.events == count)
      }
      _ = try await pool.withConnection { try await $0.script("truncate outbox") }
    }
  }

  @Test("the gauges read a bounded part of a store with many tasks")
  func bounds() async throws {
    try await withPostgresStore { store, pool in
      _ = try await store.register(.sample)
      _ = try await store.apply([.submit(.noop())])
      _ = try await pool.withConnection {
        try await $0.script(
          """
          insert into task (id, state, priority, lane_id, spec, pos)
          select gen_random_uuid(), 'queued', 0, (select id from lane), '{}', n from generate_series(1, 60000) n;
          insert into ready (lane_id, pos, task_id, epoch, attempt, sequence)
          select lane_id, pos, id, epoch, attempt, sequence from task where pos between 1 and 60000;
          insert into task (id, state, priority, lane_id, spec, finished_at, error_code, error_message, error_class)
          select gen_random_uuid(), 'failed', 0, (select id from lane), '{}', now(), 'a', 'b', 'fail'
            from generate_series(1, 60000) n;
          """)
      }
      _ = try await pool.withConnection { try await $0.script("vacuum analyze") }
      let gauges = try await store.gauges()
      #expect(gauges.runnable == [noops: FleetGauges.limit])
      #expect(gauges.tasks[.failed]?[noops] == 60_000, "maintained counts have no end")
      for call in ["waiting_tasks(10000)", "delayed_tasks(10000)", "effective_count"] {
        let buffers = try await pool.buffers("select * from \(call)")
        #expect(buffers < 12_000, Comment(rawValue: "\(call): \(buffers)"))
      }
      _ = try await pool.withConnection { try await $0.script("truncate task, ready") }
    }
  }
}
