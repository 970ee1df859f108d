import ReelhaulPostgres
import TaskCore
import TaskStore
import TestKit
import Testing

/// The tables in which the ids of a day's commands are.
@Suite struct InboxPartitionTests {
  private static func partitions(_ pool: PostgresPool) async throws -> Set<String> {
    let rows = try await pool.query(
      """
      select format('%s %s', c.relname, pg_get_userbyid(c.relowner)) from pg_inherits i join pg_class c on c.oid = i.inhrelid
       where i.inhparent = 'public.command_inbox'::regclass
      """)
    return Set(try rows.map { try $0.text(0) })
  }

  private static let dropped = """
    do $$ declare name text; begin
      for name in select inhrelid::regclass from pg_inherits where inhparent = 'command_inbox'::regclass loop
        execute 'drop table ' || name;
      end loop;
    end $$;
    """

  @Test("ids of commands are kept for 16 days, longer than Kafka may give a command again") func kept() async throws {
    try await withPostgresStore { store, pool in
      func day(_ days: Int) async throws -> String {
        try await pool.query(
          PostgresStatement("select inbox_partition((now() at time zone 'utc')::date - \(days))")
        ).first?.text(0) ?? ""
      }
      let (kept, gone) = (try await day(16), try await day(17))
      for (days, name) in [(16, kept), (17, gone)] {
        _ = try await pool.withConnection {
          try await $0.script(
            """
            do $$ declare day date := (now() at time zone 'utc')::date - \(days); begin
              execute format('create table \(name) partition of command_inbox for values from (%L) to (%L)', day, day + 1);
            end $$
            """)
        }
      }
      try await store.tidy()
      let names = Set(try await Self.partitions(pool).map { String($0.prefix { $0 != " " }) })
      #expect(names.contains(kept) && !names.contains(gone), "\(names)")
    }
  }

  @Test("operations that have ended are kept for 30 days, and the marks of dead letters for 400") func oldRows()
    async throws
  {
    try await withPostgresStore { _, pool in
      _ = try await pool.withConnection {
        try await $0.script(
          """
          \(Self.dropped)
          insert into operation (id, action, ids, state, finished_at, looked_at)
          select gen_random_uuid(), 'pause', '{}'::uuid[], 'done', now() - make_interval(days => n), n
            from unnest(array[29, 31]) n;
          insert into dead_letter_mark (partition, record_offset, record_at, mark, at)
          select 0, n, now(), 'dropped', now() - make_interval(days => n) from unnest(array[399, 401]) n;
          select tend_inbox()
          """)
      }
      let kept = try await pool.query(
        "select looked_at::bigint from operation union all select record_offset from dead_letter_mark order by 1")
      #expect(try kept.map { try $0.int64(0) } == [29, 399])
    }
  }

  @Test("tables of another schema are not taken for those that are missing") func otherSchema() async throws {
    try await withPostgresStore { store, pool in
      let before = try await Self.partitions(pool)
      let others = before.map { "create table other.\($0.prefix { $0 != " " }) ();" }.joined()
      _ = try await pool.withConnection {
        try await $0.script("create schema other; \(others) \(Self.dropped)")
        try await $0.script("set search_path = public, other; select tend_inbox(); reset search_path")
      }
      #expect(try await Self.partitions(pool) == before)
      let spec = TaskSpec.noop()
      _ = try await store.apply([.submit(spec)])
      let pause = Command.control(.init(id: .random(), taskID: spec.id, action: .pause))
      #expect(try await store.apply([pause]) == [.applied])
    }
  }

  @Test("a schema with the user's name that is made later keeps no partition from being found") func userSchema()
    async throws
  {
    try await withPostgresStore { store, pool in
      let before = try await Self.partitions(pool)
      _ = try await pool.withConnection {
        try await $0.script("do $$ begin execute format('create schema %I', current_user); end $$")
      }
      for _ in 0..<2 { _ = try await pool.query("select tend_inbox()") }
      #expect(try await Self.partitions(pool) == before)
      _ = try await pool.withConnection { try await $0.script(Self.dropped) }
      for _ in 0..<2 { _ = try await pool.query("select tend_inbox()") }
      #expect(try await Self.partitions(pool) == before)
      #expect(try await store.apply([.submit(.noop())]) == [.applied])
    }
  }

  @Test("what a member of the owner makes is the owner's") func member() async throws {
    let url = try await TestPostgres.shared.database()
    let member = "member_\(UInt32.random(in: 0 ... .max))"
    try await PostgresPool.with(.patient(url: url)) { pool in
      _ = try await Schema.migrator(pool).apply()
      let before = try await Self.partitions(pool)
      let owner = try await pool.query("select current_user::text")[0].text(0)
      try await TestPostgres.shared.asSuperuser {
        try await $0.script("create role \(member) login; grant \(owner) to \(member)")
      }
      let own = try "postgres://\(member)@\(#require(url.split(separator: "@").last))"
      try await PostgresPool.with(.patient(url: own)) { pool in
        _ = try await pool.withConnection { try await $0.script("\(Self.dropped) select tend_inbox()") }
      }
      #expect(try await Self.partitions(pool) == before)
    }
    try await TestPostgres.shared.asSuperuser { try await $0.script("drop role \(member)") }
  }
}
