import ReelhaulPostgres
import Testing

struct MigratorTests {
  static let history = [
    Migration(number: 1, name: "video", sql: "CREATE TABLE video (id int); CREATE INDEX ON video (id);"),
    Migration(number: 2, name: "title", sql: "ALTER TABLE video ADD title text"),
  ]

  @Test func appliesWhatIsPendingOnce() async throws {
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

  @Test func refusesASchemaNewerThanTheProgram() async throws {
    try await withPool { pool in
      try await Migrator(pool, Self.history).apply()
      await #expect(throws: MigrationError.newerSchema(database: 2, program: 1)) {
        try await Migrator(pool, Array(Self.history.prefix(1))).apply()
      }
    }
  }

  @Test(arguments: ["version int", "number bigint, name text, checksum bigint"])
  func refusesATableThatIsAnotherPrograms(columns: String) async throws {
    try await withPool { pool in
      try await pool.withConnection { _ = try await $0.script("CREATE TABLE schema_migration (\(columns))") }
      let migrator = Migrator(pool, Self.history)
      await #expect(throws: MigrationError.foreignTable("schema_migration")) { try await migrator.plan() }
      await #expect(throws: MigrationError.foreignTable("schema_migration")) { try await migrator.apply() }
      #expect(try await pool.query("SELECT to_regclass('video') IS NULL")[0].bool(0))
    }
  }

  @Test func refusesAChangedMigration() async throws {
    try await withPool { pool in
      try await Migrator(pool, Self.history).apply()
      let changed = [Self.history[0], Migration(number: 2, name: "title", sql: "SELECT 1")]
      await #expect(throws: MigrationError.changed(2, "title")) { try await Migrator(pool, changed).plan() }
    }
  }

  @Test func aFailedMigrationLeavesTheSchemaBeforeIt() async throws {
    try await withPool { pool in
      let broken = [Self.history[0], Migration(number: 2, name: "half", sql: "CREATE TABLE half (); SELECT 1 / 0")]
      let error = await failure { try await Migrator(pool, broken).apply() }
      #expect(error?.sqlState == "22012")
      let current = try await Migrator(pool, Self.history).plan().current
      #expect(current == 0)
      #expect(try await pool.query("SELECT to_regclass('half') IS NULL")[0].bool(0))
    }
  }

  @Test func manyAtOnceApplyEachMigrationOnce() async throws {
    try await withPool(size: 8) { pool in
      let counts = try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<8 { group.addTask { try await Migrator(pool, Self.history).apply().migrations.count } }
        return try await group.reduce(0, +)
      }
      #expect(counts == 2)
    }
  }
}
