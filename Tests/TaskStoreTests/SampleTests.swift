import ReelhaulPostgres
import TaskCore
import TaskStore
import TestKit
import Testing

/// The samples that sweeps take.
@Suite struct SampleTests {
  @Test("one sample a slot is taken, whoever sweeps, with what there is then") func slots() async throws {
    try await withPostgresStore { store, pool in
      let worker = try await store.register(.sample)
      _ = try await store.apply([.submit(.noop()), .submit(.noop())])
      let claims = try await store.claim(worker, limit: 1)
      _ = try await store.settle(claims.map { Settlement(taskID: $0.spec.id, epoch: $0.epoch, outcome: .success) })
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<4 { group.addTask { _ = try? await store.sweep() } }
      }
      _ = try await store.sweep()
      let rows = try await pool.query(
        "select queued, succeeded, ever_succeeded, count(*) over (partition by at) n from fleet_sample order by at limit 1"
      )
      #expect(rows.count == 1)
      for column in 0..<4 { #expect(try rows[0].int64(PostgresColumn(testing: column)) == 1) }
    }
  }

  @Test("samples of a clock that was set back do not keep others out") func timeToCome() async throws {
    try await withPostgresStore { store, pool in
      _ = try await pool.query(
        "insert into fleet_sample select now() + interval '30 days', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0")
      _ = try await store.sweep()
      let rows = try await pool.query(
        "select count(*), count(*) filter (where at > now()) from fleet_sample")
      #expect(try rows[0].int64(0) == 1 && rows[0].int64(1) == 0)
    }
  }

  @Test("given up events go after a week, a bounded number at a time") func givenUpHooks() async throws {
    try await withPostgresStore { store, pool in
      _ = try await pool.query(
        """
        insert into hook_delivery (task_id, sequence, url, host, type, event, run_at, error, gave_up_at)
        select gen_random_uuid(), 1, 'https://a/', 'a', 'submitted', '{}', now(), 'away',
               now() - make_interval(days => case when n > 7000 then 6 else 8 end)
          from generate_series(1, 7001) n
        """)
      for left in [2001, 1] {
        _ = try await pool.query("delete from fleet_sample")
        _ = try await store.sweep()
        #expect(try await pool.query("select count(*) from hook_delivery")[0].int64(0) == Int64(left))
      }
    }
  }

  @Test("samples are thinned with their age, and those older than 14 days go") func thinning() async throws {
    try await withPostgresStore { store, pool in
      _ = try await pool.withConnection {
        try await $0.script(
          """
          insert into fleet_sample
          select date_bin('10 min', now(), 'epoch') - n * interval '10 s', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
            from generate_series(1, 15 * 8640) n;
          insert into settled_count values ((now() at time zone 'utc')::date - 15, 'q', 'failed', 1, 0);
          select thin_samples(date_bin('10 min', now(), 'epoch'))
          """)
      }
      let rows = try await pool.query(
        """
        select count(*) filter (where age <= interval '1 day') fresh,
               count(*) filter (where age > interval '1 day' and age <= interval '3 days') minutes,
               count(*) filter (where age > interval '3 days' and age <= interval '14 days') tens,
               count(*) filter (where age > interval '14 days') gone, (select count(*) from settled_count) days
          from (select max(at) over () + interval '10 s' - at age from fleet_sample) s
        """)
      #expect(try rows[0].int64(0) == 8640)
      #expect(try rows[0].int64(1) == 2 * 1440)
      #expect(try rows[0].int64(2) == 11 * 144)
      #expect(try rows[0].int64(3) == 0 && rows[0].int64(4) == 0)
    }
  }

  @Test("the ids of removed tasks go after 17 days, a bounded number at a time") func removedTasks() async throws {
    try await withPostgresStore { store, pool in
      _ = try await pool.query(
        """
        insert into removed_task
        select gen_random_uuid(), true, now() - make_interval(days => case when n > 7000 then 16 else 18 end)
          from generate_series(1, 7001) n
        """)
      for rest in [2001, 1, 1] {
        _ = try await pool.query("delete from fleet_sample")
        _ = try await store.sweep()
        #expect(try await pool.query("select count(*) from removed_task")[0].int64(0) == Int64(rest))
      }
    }
  }

  @Test("the id of a removed task is remembered as long as a clean-up of it waits") func removedTaskToCleanUp()
    async throws
  {
    try await withPostgresStore { store, pool in
      _ = try await pool.query(
        """
        with removed as (
          insert into removed_task select gen_random_uuid(), true, now() - interval '18 days' from generate_series(1, 3)
          returning id)
        insert into cleanup (task_id, kind, storage, source_storage, spec, files)
        select id, 'download', 'default', '', '{}', true from removed limit 1
        """)
      for _ in 0..<2 {
        _ = try await pool.query("delete from fleet_sample")
        _ = try await store.sweep()
        let kept = try await pool.query("select r.id = c.task_id from removed_task r, cleanup c")
        #expect(try kept.count == 1 && kept[0].bool(0))
      }
      _ = try await pool.query("delete from cleanup")
      _ = try await pool.query("update removed_task set removed_at = now() - interval '18 days'")
      _ = try await pool.query("delete from fleet_sample")
      _ = try await store.sweep()
      #expect(try await pool.query("select from removed_task").isEmpty)
    }
  }
}
