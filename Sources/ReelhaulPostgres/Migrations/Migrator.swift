/// Brings a database's schema up to date. Each migration runs in its own transaction. An advisory lock of the
/// transaction allows one migrator at a time; it also works through PgBouncer.
package struct Migrator: Sendable {
  private let pool: PostgresPool
  private let migrations: [Migration]
  /// The limit for one migration. Building an index may take long.
  package var timeout: Duration = .seconds(3600)

  package init(_ pool: PostgresPool, _ migrations: [Migration]) {
    self.pool = pool
    self.migrations = migrations
  }

  /// The migrations that ``apply()`` would apply now. Changes nothing. Throws ``MigrationError`` or ``PostgresError``.
  package func plan() async throws -> MigrationPlan {
    try await pool.transaction(level: .repeatableRead) { try await plan(in: $0) }
  }

  /// Applies the pending migrations and returns them.
  @discardableResult
  package func apply() async throws -> [Migration] {
    var applied: [Migration] = []
    while let migration = try await applyNext() { applied.append(migration) }
    return applied
  }

  private func applyNext() async throws -> Migration? {
    try await pool.transaction { transaction in
      _ = try await transaction.query(Self.lock, .int64(Self.lockKey), timeout: timeout)
      guard let next = try await plan(in: transaction).pending.first else { return nil }
      try await transaction.script(Self.createTable)
      try await transaction.script(next.sql, timeout: timeout)
      _ = try await transaction.query(
        Self.record, .int32(Int32(next.number)), .text(next.name), .int64(next.checksum))
      return next
    }
  }

  private func plan(in transaction: PostgresTransaction) async throws -> MigrationPlan {
    let table = try await transaction.query(Self.table)[0]
    guard try table.bool(0) else { return try MigrationPlan(recorded: [], known: migrations) }
    guard try table.bool(1) else { throw MigrationError.foreignTable }
    let rows = try await transaction.query(Self.recorded)
    let records = try rows.map { row in
      MigrationPlan.Record(number: Int(try row.int64(0)), name: try row.text(1), checksum: try row.int64(2))
    }
    return try MigrationPlan(recorded: records, known: migrations)
  }

  /// `reelhaul` in ASCII.
  private static let lockKey: Int64 = 0x7265_656c_6861_756c
  private static let lock: PostgresStatement = "SELECT pg_advisory_xact_lock($1)"
  /// Whether the table exists and has our columns. The name is looked up in the present catalogue, but the columns in
  /// the transaction's snapshot, in which a table that was created since does not exist yet.
  private static let table: PostgresStatement = """
    SELECT t.oid IS NOT NULL AND EXISTS (SELECT FROM pg_class c WHERE c.oid = t.oid),
           3 = (SELECT count(*) FROM pg_attribute
                 WHERE attrelid = t.oid AND NOT attisdropped
                   AND (attname, atttypid) IN (('number', 'int4'::regtype), ('name', 'text'::regtype),
                                               ('checksum', 'int8'::regtype)))
      FROM (SELECT to_regclass('schema_migration') oid) t
    """
  private static let recorded: PostgresStatement = "SELECT number, name, checksum FROM schema_migration ORDER BY number"
  private static let record: PostgresStatement =
    "INSERT INTO schema_migration (number, name, checksum) VALUES ($1, $2, $3)"
  private static let createTable = """
    CREATE TABLE IF NOT EXISTS schema_migration (
      number int PRIMARY KEY CHECK (number > 0),
      name text NOT NULL,
      checksum bigint NOT NULL,
      applied_at timestamptz NOT NULL DEFAULT now()
    )
    """
}
