import ReelhaulPostgres
import TaskCore
import TaskStore
import TestKit
import Testing

/// How much the calls of the hot paths read.
@Suite struct QueryPlanTests {
  /// After a vacuum of empty tables, the statistics make it seem cheapest to read these tables completely. No call may
  /// do this: soon the tables are full again, and a call for ten tasks would read every row, some of them once per
  /// task.
  @Test("no call reads a whole table after statistics of empty tables")
  func noCallReadsAllOfATableThatWasEmptyOnce() async throws {
    try await withPostgresStore { store, pool in
      _ = try await store.register(.sample)
      _ = try await store.apply([.submit(.noop())])
      for step in [Self.fill, Self.empty] {
        _ = try await pool.withConnection { try await $0.script(step) }
      }
      _ = try await pool.withConnection { try await $0.script("vacuum (truncate false) \(Self.tables)") }
      _ = try await pool.withConnection { try await $0.script(Self.fill) }

      for call in Self.calls {
        let buffers = try await pool.buffers(
          """
          with named as (select array_agg(task_id) ids, array_agg(gen_random_uuid()) new_ids
                           from (select task_id from run limit 10) ten)
          select \(call) from named
          """)
        #expect(buffers < 700, Comment(rawValue: call))
      }
      _ = try await pool.withConnection { try await $0.script(Self.empty) }
    }
  }

  /// What is planned for its indexes alone is costly to the planner, and would be compiled at each call.
  @Test("functions with planner settings have all of them, and run without JIT")
  func indexedFunctionsAreNotCompiled() async throws {
    try await withPostgresStore { _, pool in
      let rows = try await pool.query(
        """
        select proname, proconfig::text from pg_proc
         where pronamespace = current_schema()::regnamespace and proconfig::text ~ 'enable_(hash|merge|seq)|reelhaul'
        """)
      #expect(rows.count > 10)
      for row in rows {
        let (name, settings) = (try row.text(0), try row.text(1))
        let all = ["plan_cache_mode=force_generic_plan", "hashjoin=off", "mergejoin=off", "seqscan=off", "jit=off"]
        for setting in all { #expect(settings.contains(setting), "\(name)") }
        #expect(!settings.contains("reelhaul."), "\(name) has only the mark")
      }
    }
  }

  /// Callers read these a few times a second.
  @Test("queued tasks are listed without reading ended ones")
  func queuedTasksAreFoundWithoutReadingWhatHasEnded() async throws {
    try await withPostgresStore { store, pool in
      _ = try await store.apply([.submit(.noop()), .submit(.noop(notBefore: .later))])
      _ = try await pool.query(
        """
        insert into task (id, state, priority, lane_id, created_at, finished_at, spec)
        select gen_random_uuid(), 'succeeded', 0, lane_id, now() + interval '1 h', now(), spec
          from task, generate_series(1, 5000)
        """)
      #expect(try await store.tasks(TaskFilter(state: .queued)).count == 2)
      #expect(try await store.tasks(TaskFilter(state: .queued, queue: "default")).count == 2)
      #expect(try await pool.buffers("select * from find_tasks(array['queued'])") < 100)
    }
  }

  @Test("running tasks are listed without reading the tasks that do not run")
  func runningTasksAreFoundByTheirRuns() async throws {
    try await withPostgresStore { store, pool in
      _ = try await store.register(.sample)
      _ = try await store.apply([.submit(.noop())])
      _ = try await pool.withConnection { connection in
        try await connection.script(
          """
          insert into task (id, state, priority, lane_id, pos, spec)
          select gen_random_uuid(), 'queued', 0, lane_id, n, spec from task, generate_series(1, 3000) n;
          insert into run (task_id, epoch, worker_id, claim_call, queue_id, kind_id, host_id, storage_id, attempt,
                           sequence)
          select t.id, 1, w.id, 1, l.queue_id, l.kind_id, l.host_id, l.storage_id, 1, 2
            from task t join lane l on l.id = t.lane_id cross join worker w where t.pos <= 3000;
          delete from run using task t where t.id = task_id and t.pos > 20;
          insert into task (id, state, priority, lane_id, created_at, pos, spec)
          select gen_random_uuid(), 'queued', 0, lane_id, now() + interval '1 h', n, spec
            from (select * from task limit 1) t, generate_series(1, 20000) n;
          analyze task
          """)
      }
      #expect(try await store.tasks(TaskFilter(state: .running, limit: 10)).count == 10)
      #expect(try await pool.buffers("select * from find_tasks(array['running'], most => 10)") < 500)
      _ = try await pool.withConnection { try await $0.script(Self.empty) }
    }
  }

  /// While a snapshot is held, for a dump or a long query, vacuum cannot remove the rows of tasks that have started.
  @Test("what waits is found without reading the rows of tasks that started while a snapshot is held")
  func startedTasksAreNotReadAgain() async throws {
    try await withPostgresStore { store, pool in
      _ = try await store.apply([.submit(.noop())])
      _ = try await pool.withConnection { connection in
        try await connection.script(
          "insert into ready select lane_id, n, gen_random_uuid(), 0, 0, 1 from task, generate_series(1, 15000) n")
        try await connection.script("begin isolation level repeatable read; select from ready limit 1")
        _ = try await pool.query("delete from ready where pos <= 15000")
        _ = try await pool.query("update lane set head = 15001")
        for call in [
          "waiting_needs()", "find_tasks(array['queued'], most => 10)",
          "find_tasks(array['queued'], array['default'], most => 10)", "demand(1, 1000)",
        ] {
          #expect(try await pool.buffers("select * from \(call)") < 60, "\(call)")
        }
        try await connection.script("rollback")
      }
      #expect(try await store.backlog().kinds == [.noop])
      #expect(try await store.tasks(TaskFilter(state: .queued)).count == 1)
    }
  }

  @Test("what waits for other tasks is released by looking at each once, also before there are statistics")
  func dependentsAreReadOnce() async throws {
    try await withPostgresStore { store, pool in
      let first = TaskSpec.noop()
      _ = try await store.apply([.submit(first), .submit(.noop(after: [first.id]))])
      try await pool.withConnection { connection in
        _ = try await connection.script(
          """
          insert into task (id, state, priority, lane_id, spec)
          select gen_random_uuid(), 'blocked', 0, lane_id, spec from task, generate_series(1, 5000)
           where state = 'blocked';
          insert into task_dependency select id, '\(first.id)' from task where state = 'blocked' on conflict do nothing
          """)
        // The statement of the function, with the function's settings.
        let rows = try await connection.query(
          """
          select 'prepare release(uuid[], uuid[]) as '
                   || replace(replace(substring(prosrc from 'delete from task_dependency[^;]*'),
                                      'dependents', '$1'), 'succeeded', '$2'),
                 (select string_agg('set ' || c, ';') from unnest(proconfig) c),
                 (select array_agg(task_id)::text from task_dependency)
            from pg_proc where proname = 'release_dependents' and pronamespace = current_schema()::regnamespace
          """)
        let results = try await connection.script(
          """
          begin; \(rows[0].text(1)); \(rows[0].text(0));
          explain (analyze, timing off)
          execute release('\(rows[0].text(2))', array['\(first.id)'::uuid]);
          rollback
          """)
        let plan = try #require(results.last { !$0.isEmpty }).map { try $0.text(0) }
        let passedOver = plan.filter { $0.contains("Removed by") }.map { $0.split(separator: " ").last ?? "" }
        #expect(passedOver.allSatisfy { Int($0) ?? 0 < 100_000 }, "\(plan.joined(separator: "\n"))")
      }
    }
  }

  @Test("of many waiting tasks, a list reads few")
  func listsReadOnlyTheFirstOfManyWaitingTasks() async throws {
    try await withPostgresStore { store, pool in
      _ = try await store.apply([.submit(.noop())])
      _ = try await pool.withConnection { connection in
        try await connection.script(
          """
          insert into task (id, state, priority, lane_id, created_at, pos, spec)
          select gen_random_uuid(), 'queued', 0, lane_id, now() + n * interval '1 ms', n, spec
            from task, generate_series(1, 30000) n;
          insert into ready select lane_id, pos, id, 0, 0, 1 from task where pos <= 30000;
          analyze task
          """)
      }
      #expect(try await store.tasks(TaskFilter(state: .queued, limit: 10)).count == 10)
      #expect(try await pool.buffers("select * from find_tasks(array['queued'], most => 10)") < 150)
    }
  }

  @Test("a burst of web hooks for many hosts is claimed by keys, whatever the statistics are from")
  func hooksAreClaimedByKeys() async throws {
    try await withPostgresStore { store, pool in
      _ = try await store.register(.sample)
      func insert(_ hosts: Int) async throws {
        _ = try await pool.withConnection { connection in
          try await connection.script(
            """
            insert into hook_delivery (task_id, sequence, url, host, type, event, run_at)
            select gen_random_uuid(), 1, 'https://h' || n % \(hosts), 'h' || n % \(hosts), 'submitted', '{}', now()
              from generate_series(1, 10 * \(hosts)) n
            """)
        }
      }
      try await insert(2)
      _ = try await pool.query("analyze hook_delivery")
      try await insert(500)
      let buffers = try await pool.buffers("select * from claim_hooks((select id from worker), 12, 4, '{}')")
      #expect(buffers < 30_000, "\(buffers)")
      // Of none that is due, none is read: every worker asks.
      _ = try await pool.query("update hook_delivery set run_at = now() + interval '1 h'")
      _ = try await pool.query("vacuum hook_delivery")
      let idle = try await pool.buffers("select * from claim_hooks((select id from worker), 12, 4, '{}')")
      #expect(idle < 50, "\(idle)")
    }
  }

  @Test("limits are learned of many hosts without looking at every run for each")
  func limitsOfManyHostsAreLearnedAtOnce() async throws {
    try await withPostgresStore { store, pool in
      _ = try await store.register(.sample)
      _ = try await store.apply([.submit(.noop())])
      _ = try await pool.query("vacuum analyze")
      _ = try await pool.withConnection { connection in
        try await connection.script(
          """
          insert into bucket (id, scope, name) select 1000 + n, 'host', 'h' || n from generate_series(1, 3000) n;
          insert into lane (rank, queue_id, kind_id, host_id, storage_id)
          select 0, queue_id, kind_id, b.id, storage_id from (select * from lane limit 1) l, bucket b where b.id > 1000;
          insert into task (id, state, priority, lane_id, spec, pos)
          select gen_random_uuid(), 'queued', 0, l.id, t.spec, 1 from (select * from task limit 1) t, lane l
           where l.host_id > 1000;
          insert into run (task_id, epoch, worker_id, claim_call, queue_id, kind_id, host_id, storage_id, attempt, sequence)
          select t.id, 1, w.id, 1, l.queue_id, l.kind_id, l.host_id, l.storage_id, 1, 1
            from task t join lane l on l.id = t.lane_id cross join worker w where l.host_id > 1000;
          update worker set host_names = (select array_agg(name) from bucket where scope = 'host' and id > 1000),
                            host_limits = array_fill(1, '{3000}'), host_refuses = array_fill(false, '{3000}')
          """)
      }
      let buffers = try await pool.buffers("select * from learned_limits()")
      #expect(buffers < 20_000, "\(buffers)")
      _ = try await pool.withConnection { try await $0.script(Self.empty) }
    }
  }

  private static let tables = """
    run, ready, task, delayed, checkpoint, intent, task_dependency, removed_task, command_inbox
    """

  private static let empty =
    "begin; " + tables.split(separator: ", ").map { "delete from \($0);" }.joined() + " commit"

  /// 10,000 rows in every table, so that a complete read of a table cannot be missed.
  private static let fill = """
    begin;
    insert into task (id, state, priority, lane_id, pos, spec)
    select gen_random_uuid(), 'queued', 0, l.id, n, '{"kind": "noop"}' from lane l, generate_series(1, 10000) n;
    insert into run (task_id, epoch, worker_id, claim_call, queue_id, kind_id, host_id, storage_id, attempt, sequence)
    select t.id, 1, w.id, 1, l.queue_id, l.kind_id, l.host_id, l.storage_id, 1, 1
      from task t join lane l on l.id = t.lane_id cross join worker w;
    insert into ready select l.id, 1000000 + n, gen_random_uuid(), 0, 0, 1 from lane l, generate_series(1, 10000) n;
    insert into delayed select gen_random_uuid(), now() + interval '1 h' from run;
    insert into checkpoint select task_id, 1, 1, 1, 0, null, null, '{}' from run;
    insert into intent select worker_id, task_id, 'pause' from run;
    insert into task_dependency select gen_random_uuid(), task_id from run;
    insert into removed_task select gen_random_uuid(), true from run;
    insert into command_inbox select gen_random_uuid(), (now() at time zone 'utc')::date from run;
    commit
    """

  /// Each statement is for the ten tasks `ids`; `new_ids` are ten unknown ids.
  private static let calls =
    [
      "begin_apply(false, ids)", "claim_tasks((select id from worker), 10, 2)", "claimed(ids)",
      "had_checkpoint(ids[1])",
      "task_documents(ids)", "unfinished(ids, ids)", "leave_to_clean_up(ids, true)",
      "demand((select id from worker), 10)",
      "control(new_ids, ids, \(ten("'pause'::text")), \(ten("0::smallint")))",
      """
      submit('{0}', '{default}', '{noop}', '{example.com}', '{""}', new_ids, \(ten("1")), \(ten("0::smallint")),
             \(ten("null::timestamptz")), \(ten("false")), \(ten("'{}'::json")), new_ids, ids)
      """,
      "record_progress(ids, \(ten("1")), \(ten("1::bigint")), \(ten("2::bigint")), \(ten("3::bigint")))",
      """
      record_checkpoints(ids, \(ten("1")), \(ten("1::smallint")), \(ten("1")), \(ten("1::bigint")), \(ten("2::bigint")),
                         \(ten("'publishing'::text")), \(ten("'{}'::json")))
      """,
      "release_tasks(ids, 'resumed')", "enqueue(ids, false)", "renew((select id + 1 from worker))",
      "(select due from sweep())",
    ]
    + [(1, "succeeded"), (1, "failed"), (1, "released"), (2, "succeeded")].map { epoch, outcome in
      """
      settle(ids, \(ten("\(epoch)")), \(ten("'\(outcome)'::text")), \(ten("1::bigint")), \(ten("null::bytea")), \(ten("1::bigint")),
             \(ten("null::json")),
             \(ten("'x'::text")), \(ten("'x'::text")), \(ten("'retry'::text")), \(ten("null::int")))
      """
    }

  private static func ten(_ value: String) -> String {
    "array_fill(\(value), '{10}')"
  }
}

extension PostgresPool {
  /// The pages that a statement reads. The statement must change nothing. It is run twice, because the first run also
  /// reads the catalogs.
  func buffers(_ statement: String) async throws -> Int {
    let explained = "explain (analyze, buffers, timing off) \(statement)"
    let results = try await withConnection { connection in
      try await connection.script("begin; savepoint s; \(explained); rollback to s; \(explained); rollback")
    }
    let lines = try #require(results.last { !$0.isEmpty }).map { try $0.text(0) }
    let line = try #require(lines.first { $0.contains("Buffers: shared") }, "\(lines)")
    return line.matches(of: /(hit|read)=(\d+)/).reduce(0) { $0 + (Int($1.2) ?? 0) }
  }
}
