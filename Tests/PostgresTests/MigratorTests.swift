import ReelhaulPostgres
import ReelhaulSystem
import TestKit
import Testing

struct MigratorTests {
  static let history = [
    Migration(number: 1, name: "video", sql: "CREATE TABLE video (id int); CREATE INDEX ON video (id);"),
    Migration(number: 2, name: "title", sql: "ALTER TABLE video ADD title text"),
  ]

  @Test("pending migrations are applied once and in order")
  func appliesWhatIsPendingOnce() async throws {
    try await withPool { pool in
      let first = Migrator(pool, Array(Self.history.prefix(1)))
      #expect(try await first.plan().pending.map(\.number) == [1])
      #expect(try await first.apply().migrations.map(\.number) == [1])
      let all = Migrator(pool, Self.history)
      let plan = try await all.plan()
      #expect(plan.current == 1)
      #expect(plan.pending.map(\.name) == ["title"])
      #expect(try await all.apply().migrations.map(\.number) == [2])
      #expect(try await all.apply() == MigrationResult())
      #expect(try await all.plan().isUpToDate)
      _ = try await pool.query("SELECT title FROM video")
    }
  }

  @Test("a database whose encoding cannot hold all texts is refused")
  func encoding() async throws {
    let url = try await TestPostgres.shared.database("ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'")
    try await withPool(try .patient(url: url)) { pool in
      for _ in 1...2 {
        await #expect(throws: MigrationError.encoding("SQL_ASCII")) { try await Migrator(pool, Self.history).apply() }
      }
    }
  }

  @Test("a schema newer than the program is refused")
  func refusesASchemaNewerThanTheProgram() async throws {
    try await withPool { pool in
      try await Migrator(pool, Self.history).apply()
      await #expect(throws: MigrationError.newerSchema(database: 2, program: 1)) {
        try await Migrator(pool, Array(Self.history.prefix(1))).apply()
      }
    }
  }

  @Test(
    "a migration table of another program is refused",
    arguments: ["version int", "number bigint, name text, checksum bigint"])
  func refusesATableThatIsAnotherPrograms(columns: String) async throws {
    try await withPool { pool in
      try await pool.withConnection { _ = try await $0.script("CREATE TABLE schema_migration (\(columns))") }
      let migrator = Migrator(pool, Self.history)
      await #expect(throws: MigrationError.foreignTable("schema_migration")) { try await migrator.plan() }
      await #expect(throws: MigrationError.foreignTable("schema_migration")) { try await migrator.apply() }
      #expect(try await pool.query("SELECT to_regclass('video') IS NULL")[0].bool(0))
    }
  }

  @Test("a migration that was changed after it was applied is refused")
  func refusesAChangedMigration() async throws {
    try await withPool { pool in
      try await Migrator(pool, Self.history).apply()
      let changed = [Self.history[0], Migration(number: 2, name: "title", sql: "SELECT 1")]
      await #expect(throws: MigrationError.changed(2, "title")) { try await Migrator(pool, changed).plan() }
    }
  }

  @Test("a failed migration leaves the schema as it was before")
  func aFailedMigrationLeavesTheSchemaBeforeIt() async throws {
    try await withPool { pool in
      let broken = [Self.history[0], Migration(number: 2, name: "half", sql: "CREATE TABLE half (); SELECT 1 / 0")]
      let error = await failure { try await Migrator(pool, broken).apply() }
      #expect(error?.sqlState == "22012")
      let current = try await Migrator(pool, Self.history).plan().current
      #expect(current == 0)
      #expect(try await pool.query("SELECT to_regclass('half') IS NULL")[0].bool(0))
    }
  }

  @Test("several migrators at once apply each migration once")
  func manyAtOnceApplyEachMigrationOnce() async throws {
    try await withPool(size: 8) { pool in
      let counts = try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<8 { group.addTask { try await Migrator(pool, Self.history).apply().migrations.count } }
        return try await group.reduce(0, +)
      }
      #expect(counts == 2)
    }
  }

  static func routines(_ sql: String, revision: Int = 0) -> Routines {
    Routines(
      sql: "CREATE FUNCTION length_of(v video) RETURNS int LANGUAGE sql AS $$ SELECT v.id $$; \(sql)",
      tables: ["video"], revision: revision)
  }

  @Test("an older program does not put its routines in the place of newer ones, unless it is told to")
  func newerRoutinesAreKept() async throws {
    try await withPool { pool in
      let newer = Migrator(pool, Self.history, routines: Self.routines("SELECT 2", revision: 2))
      let older = Migrator(pool, Self.history, routines: Self.routines("SELECT 1", revision: 1))
      try await newer.apply()
      #expect(try await older.plan().newerRevision == 2)
      await #expect(throws: MigrationError.newerRoutines(database: 2, program: 1)) { try await older.apply() }
      #expect(try await newer.plan().isUpToDate)
      var insisting = older
      insisting.replacesNewerRoutines = true
      #expect(try await insisting.apply().routines)
      #expect(try await older.plan().isUpToDate)
      let plan = try await newer.plan()
      #expect(plan.needsRoutines && plan.newerRevision == nil)
      // As a program left it that knew no revisions.
      try await pool.withConnection { _ = try await $0.script("ALTER TABLE schema_routines DROP revision") }
      #expect(try await older.plan().isUpToDate)
      #expect(try await newer.apply().routines)
      #expect(try await older.plan().newerRevision == 2)
    }
  }

  @Test("functions, views and triggers are made anew when they differ, and what is no longer among them goes")
  func routines() async throws {
    try await withPool { pool in
      try await pool.withConnection {
        _ = try await $0.script("CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 7'")
      }
      let first = Self.routines(
        """
        CREATE FUNCTION old() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;
        CREATE VIEW videos AS SELECT id FROM video;
        CREATE FUNCTION every() RETURNS SETOF videos LANGUAGE sql AS $$ SELECT * FROM videos $$;
        CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
        CREATE TRIGGER touched AFTER INSERT ON video EXECUTE FUNCTION touch();
        """)
      let migrator = Migrator(pool, Self.history, routines: first)
      #expect(try await migrator.plan().needsRoutines)
      #expect(try await migrator.apply().routines)
      #expect(try await migrator.plan().isUpToDate)
      let second = Self.routines("CREATE VIEW videos AS SELECT title, id FROM video;")
      let next = Migrator(pool, Self.history, routines: second)
      let plan = try await next.plan()
      #expect(plan.needsRoutines && plan.pending.isEmpty && !plan.isUpToDate)
      let result = try await next.apply()
      #expect(result.routines && result.migrations.isEmpty)
      #expect(try await next.apply() == MigrationResult())
      _ = try await pool.query("SELECT title FROM videos")
      #expect(try await pool.query("SELECT mine()")[0].int64(0) == 7, "somebody else's stays")
      for gone in ["old()", "every()", "touch()"] {
        #expect(try await pool.query("SELECT to_regprocedure($1) IS NULL", .text(gone))[0].bool(0), "\(gone)")
      }
      #expect(try await pool.query("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal")[0].int64(0) == 0)
    }
  }

  @Test("routines that fail leave the ones that are there")
  func brokenRoutines() async throws {
    try await withPool { pool in
      try await Migrator(pool, Self.history, routines: Self.routines("")).apply()
      let error = await failure {
        try await Migrator(pool, Self.history, routines: Self.routines("SELECT 1 / 0")).apply()
      }
      #expect(error?.sqlState == "22012")
      _ = try await pool.query("SELECT length_of(v) FROM video v")
      #expect(try await Migrator(pool, Self.history, routines: Self.routines("")).plan().isUpToDate)
    }
  }

  @Test("a migrator waits for a table in use a moment at a time, and lets others go on meanwhile")
  func aTableInUse() async throws {
    try await withPool(size: 4) { pool in
      try await Migrator(pool, Self.history, routines: Self.routines("")).apply()
      try await pool.transaction { transaction in
        _ = try await transaction.query("SELECT count(*) FROM video")
        var hasty = Migrator(pool, Self.history, routines: Self.routines("SELECT 2"))
        hasty.patience = .milliseconds(500)
        let error = await failure { try await hasty.apply() }
        #expect(error?.sqlState == "55P03")
        _ = try await transaction.query("SELECT count(*) FROM video")
      }
      #expect(try await Migrator(pool, Self.history, routines: Self.routines("SELECT 2")).apply().routines)
    }
  }

  @Test("the role's limits for statements do not end a migration, nor its wait for another migrator or a table")
  func limitsOfTheRole() async throws {
    try await withPool { pool in
      _ = try await pool.transaction { transaction in
        let limits = "SET statement_timeout = '100ms'; SET lock_timeout = '100ms'"
        try await transaction.script(limits)
      }
      let long = Migration(number: 1, name: "long", sql: "SELECT pg_sleep(0.5); CREATE TABLE video (id int)")
      #expect(try await Migrator(pool, [long]).apply().migrations == [long])
    }
  }

  @Test("what a migrator that is stopped had locked is free soon") func stopped() async throws {
    try await withPool { pool in
      let names = ["idle_in_transaction_session_timeout", "client_connection_check_interval"]
      let settings = names.map { "current_setting('\($0)') AS \($0)" }.joined(separator: ", ")
      try await Migrator(pool, [Migration(number: 1, name: "told", sql: "CREATE TABLE told AS SELECT \(settings)")])
        .apply()
      let told = try await pool.query("SELECT * FROM told")[0]
      #expect(try told.text(0) == "30s" && told.text(1) == "1s")
    }
  }

  @Test("what a killed migrator had locked is free soon, however long its statement takes")
  func killed() async throws {
    let configuration = try PostgresConfiguration.patient(url: try await TestPostgres.shared.database())
    try await withPool(configuration) { pool in
      try await Migrator(pool, Self.history, routines: Self.routines("")).apply()
      let loop = EventLoop(name: "killed")
      let killed = PostgresPool(loop: loop, configuration: configuration, size: 1)
      let long = Self.history + [Migration(number: 3, name: "long", sql: "SELECT pg_sleep(1000)")]
      let run = loop.task { try await Migrator(killed, long, routines: Self.routines("")).apply() }
      let sleeping = PostgresStatement(
        """
        SELECT count(*) FROM pg_stat_activity
         WHERE query = 'SELECT pg_sleep(1000)' AND state = 'active' AND datname = current_database()
        """)
      try await eventually("it is under way") { try await pool.query(sleeping)[0].int64(0) == 1 }
      await killed.close()
      _ = await run.result
      loop.shutdown()
      try await eventually("its session has ended") { try await pool.query(sleeping)[0].int64(0) == 0 }
      _ = try await pool.query("SELECT count(*) FROM video")
    }
  }

  @Test("contents that a migration had before count as applied")
  func formerContents() async throws {
    try await withPool { pool in
      let former = Migration(number: 1, name: "video", sql: "CREATE TABLE video (id int)")
      try await Migrator(pool, [former]).apply()
      let sum = try await pool.query("SELECT checksum FROM schema_history")[0].int64(0)
      let now = Migration(number: 1, name: "video", sql: "CREATE TABLE video ()", formerChecksums: [sum])
      #expect(try await Migrator(pool, [now, Self.history[1]]).apply().migrations.map(\.number) == [2])
    }
  }
}
