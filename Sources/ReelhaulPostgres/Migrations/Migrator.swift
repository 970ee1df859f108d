import ReelhaulSystem

/// Brings a database's schema up to date. It applies everything that is pending in one transaction. An advisory lock
/// lets only one migrator run at a time; it belongs to the transaction, so that it also works with PgBouncer.
///
/// Programs may use the schema at the same time. They never wait longer than ``lockTimeout`` and the change itself: if
/// a table is in use, the migrator gives up its locks and tries again. A call that began before the change and reaches
/// its first table after it may miss a function or a column. It then fails as a whole, and is repeated with the new
/// schema.
package struct Migrator: Sendable {
  private let pool: PostgresPool
  private let migrations: [Migration]
  private let routines: Routines?
  /// The time limit for all migrations together; building an index may take long.
  package var timeout: Duration = .seconds(3600)
  /// How long the migrator waits for each table; other callers wait behind it. The sum for all tables is less than
  /// PostgreSQL's `deadlock_timeout`, so that no program's call becomes the victim of a deadlock.
  package var lockTimeout: Duration = .milliseconds(80)
  /// How long tables may be in use, for example by a vacuum or by `pg_dump`. The time in which another migrator works does
  /// not count.
  package var patience: Duration = .seconds(600)
  /// Whether the routines of a newer program are replaced. Programs that need the newer ones fail then.
  package var replacesNewerRoutines = false

  package init(_ pool: PostgresPool, _ migrations: [Migration], routines: Routines? = nil) {
    self.pool = pool
    self.migrations = migrations
    self.routines = routines
  }

  /// The migrations that ``apply()`` would apply now. Changes nothing. Throws ``MigrationError`` or ``PostgresError``.
  package func plan() async throws -> MigrationPlan {
    try await pool.transaction(level: .repeatableRead) { try await plan(in: $0).plan }
  }

  /// Throws ``MigrationError`` if ``apply()`` would do so because of the routines.
  package func check(_ plan: MigrationPlan) throws(MigrationError) {
    guard let newer = plan.newerRevision, !replacesNewerRoutines else { return }
    throw .newerRoutines(database: newer, program: routines?.revision ?? 0)
  }

  /// Applies everything that is pending, or nothing, and returns what it applied.
  @discardableResult
  package func apply() async throws -> MigrationResult {
    let end = Lock(BootInstant.distantFuture)
    while true {
      do {
        return try await pool.transaction { transaction in
          try await transaction.script(Self.settings)
          _ = try await transaction.query(Self.lock, .int64(Self.lockKey), timeout: timeout)
          end.withLock { $0 = min($0, .now + patience) }
          return try await apply(in: transaction)
        }
      } catch let error as PostgresError where error.isMissedLock && end.withLock({ .now < $0 }) {
        try await pool.loop.sleep(for: .milliseconds(200))
      }
    }
  }

  private func apply(in transaction: PostgresTransaction) async throws -> MigrationResult {
    let (plan, history) = try await plan(in: transaction)
    guard !plan.isUpToDate else { return MigrationResult() }
    try check(plan)
    _ = try await transaction.query(Self.setLockTimeout, .text("\(lockTimeout.milliseconds)"))
    if let routines, !routines.tables.isEmpty {
      let tables = routines.tables.map { "'\($0)'" }.joined(separator: ", ")
      try await transaction.script(Self.lockTables(tables))
    }
    if history == Self.formerHistory {
      try await transaction.script("ALTER TABLE \(Self.formerHistory) RENAME TO \(Self.history)")
    }
    try await transaction.script(Self.createTables)
    if plan.needsRoutines { try await transaction.script(Self.dropRoutines) }
    for migration in plan.pending {
      try await transaction.script(migration.sql, timeout: timeout)
      _ = try await transaction.query(
        Self.record, .int32(Int32(migration.number)), .text(migration.name), .int64(migration.checksum))
    }
    if let routines, plan.needsRoutines {
      let others = try await transaction.query(Self.objects).values { try $0.text() }
      try await transaction.script(routines.sql, timeout: timeout)
      _ = try await transaction.query(
        Self.recordRoutines, .int64(routines.checksum), .textArray(others), .int32(Int32(routines.revision)))
    }
    return MigrationResult(plan)
  }

  /// `history` is the name of the history's table; nil if it does not exist yet.
  private func plan(in transaction: PostgresTransaction) async throws -> (plan: MigrationPlan, history: String?) {
    for table in [Self.history, Self.formerHistory] {
      let found = try await transaction.query(Self.table, .text(table))
      let encoding = try found.only.text(found.columns["encoding"])
      guard encoding == "UTF8" else { throw MigrationError.encoding(encoding) }
      guard try found.only.bool(found.columns["exists"]) else { continue }
      guard try found.only.bool(found.columns["is_ours"]) else { throw MigrationError.foreignTable(table) }
      let rows = try await transaction.query(table == Self.history ? Self.recorded : Self.formerlyRecorded)
      let records = try rows.decode { columns in
        let (number, name, checksum) = (try columns["number"], try columns["name"], try columns["checksum"])
        return { row in
          MigrationPlan.Record(
            number: Int(try row.int64(number)), name: try row.text(name), checksum: try row.int64(checksum))
        }
      }
      let routinesTable = try await transaction.query(Self.table, .text("schema_routines"))
      let isPresent = try routinesTable.only.bool(routinesTable.columns["exists"])
      var made: MigrationPlan.RoutinesRecord?
      if isPresent {
        let rows = try await transaction.query(Self.recordedRoutines)
        let (checksum, revision) = (try rows.columns["checksum"], try rows.columns["revision"])
        made = try rows.first.map { row in
          MigrationPlan.RoutinesRecord(checksum: try row.int64(checksum), revision: Int(try row.int64(revision)))
        }
      }
      return (try MigrationPlan(recorded: records, known: migrations, routines: (made, routines)), table)
    }
    return (try MigrationPlan(recorded: [], known: migrations, routines: (nil, routines)), nil)
  }
}

extension PostgresError {
  /// Whether a table was in use for too long, or the migrator lost a race with another transaction. Nothing was
  /// changed.
  fileprivate var isMissedLock: Bool { ["55P03", "40P01", "40001"].contains(sqlState) }
}

// MARK: Statements

extension Migrator {
  private static let history = "schema_history"
  /// The former name of the table. The new name hides histories with more than one line from workers of the version
  /// before.
  private static let formerHistory = "schema_migration"

  /// `reelhaul` in ASCII.
  private static let lockKey: Int64 = 0x7265_656c_6861_756c
  private static let lock: PostgresStatement = "SELECT pg_advisory_xact_lock($1)"
  /// The limits of the role are for programs. If this one is killed, the server rolls its transaction back within a second;
  /// one that cannot look (on Windows) does so only when the present statement ends. If this program is stopped, or its machine
  /// is gone, what it has locked is free again within half a minute.
  private static let settings = """
    SET LOCAL statement_timeout = 0;
    SET LOCAL lock_timeout = 0;
    SET LOCAL idle_in_transaction_session_timeout = '30s';
    SET LOCAL tcp_keepalives_idle = 10;
    SET LOCAL tcp_keepalives_interval = 5;
    SET LOCAL tcp_keepalives_count = 4;
    DO $do$
    BEGIN
      SET LOCAL client_connection_check_interval = 1000;
    EXCEPTION WHEN invalid_parameter_value THEN
      NULL;
    END $do$;
    DO $do$
    BEGIN
      SET LOCAL transaction_timeout = 0;
    EXCEPTION WHEN undefined_object THEN
      NULL;
    END $do$
    """
  private static let setLockTimeout: PostgresStatement = "SELECT set_config('lock_timeout', $1, true)"

  private static func lockTables(_ names: String) -> String {
    """
    DO $do$
    DECLARE
      name text;
    BEGIN
      FOREACH name IN ARRAY array[\(names)] LOOP
        IF to_regclass(name) IS NOT NULL THEN
          EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', name);
        END IF;
      END LOOP;
    END $do$
    """
  }

  /// Whether the table exists and has our columns, and the encoding of the database. The table's name is looked up among the present tables, but the rest is read
  /// in the transaction's snapshot, in which a table that was made since then does not exist yet.
  private static let table: PostgresStatement = """
    SELECT t.oid IS NOT NULL AND EXISTS (SELECT FROM pg_class c WHERE c.oid = t.oid) AS exists,
           3 = (SELECT count(*) FROM pg_attribute
                 WHERE attrelid = t.oid AND NOT attisdropped
                   AND (attname, atttypid) IN (('number', 'int4'::regtype), ('name', 'text'::regtype),
                                               ('checksum', 'int8'::regtype))) AS is_ours,
           current_setting('server_encoding') AS encoding
      FROM (SELECT to_regclass($1) oid) t
    """
  private static let recorded: PostgresStatement = "SELECT number, name, checksum FROM schema_history ORDER BY number"
  private static let formerlyRecorded: PostgresStatement =
    "SELECT number, name, checksum FROM schema_migration ORDER BY number"
  private static let record: PostgresStatement =
    "INSERT INTO schema_history (number, name, checksum) VALUES ($1, $2, $3)"
  /// A table that an older program has made has no revision.
  private static let recordedRoutines: PostgresStatement = """
    SELECT checksum, coalesce((to_jsonb(r) ->> 'revision')::bigint, 0) AS revision FROM schema_routines r
    """

  /// `schema_routines` has one line: the checksum, the revision and the names of the present routines.
  private static let createTables = """
    CREATE TABLE IF NOT EXISTS schema_history (
      number int PRIMARY KEY CHECK (number > 0),
      name text NOT NULL,
      checksum bigint NOT NULL,
      applied_at timestamptz NOT NULL DEFAULT now()
    );
    CREATE TABLE IF NOT EXISTS schema_routines (
      is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
      checksum bigint NOT NULL,
      applied_at timestamptz NOT NULL DEFAULT now(),
      triggers text[] NOT NULL,
      functions text[] NOT NULL,
      views text[] NOT NULL
    );
    ALTER TABLE schema_routines ADD COLUMN IF NOT EXISTS revision int NOT NULL DEFAULT 0;
    """

  /// Drops only our own routines: if another program's view depends on one of them, the statement fails and says so.
  /// Functions may depend on views, because they use their types, but views do not depend on functions.
  private static let dropRoutines = """
    DO $do$
    DECLARE
      r schema_routines;
      gone text;
    BEGIN
      SELECT * INTO r FROM schema_routines;
      FOREACH gone IN ARRAY coalesce(r.triggers, '{}') LOOP
        EXECUTE format('DROP TRIGGER IF EXISTS %s', gone);
      END LOOP;
      IF cardinality(r.functions) > 0 THEN
        EXECUTE format('DROP FUNCTION IF EXISTS %s', array_to_string(r.functions, ', '));
      END IF;
      IF cardinality(r.views) > 0 THEN
        EXECUTE format('DROP VIEW IF EXISTS %s', array_to_string(r.views, ', '));
      END IF;
    END $do$
    """

  /// All routines in this schema, each as `kind identity`. The difference before and after making the routines shows
  /// which ones are ours.
  private static let objectNames = """
    SELECT 'trigger ' || format('%I ON %s', tgname, tgrelid::regclass) object FROM pg_trigger
     WHERE NOT tgisinternal AND tgparentid = 0
       AND tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace)
    UNION ALL
    SELECT 'function ' || oid::regprocedure FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
    UNION ALL
    SELECT 'view ' || oid::regclass FROM pg_class
     WHERE relnamespace = current_schema()::regnamespace AND relkind = 'v'
    """

  private static let objects = PostgresStatement(objectNames)

  /// $1: the checksum; $2: the names of the objects that existed before; $3: the revision.
  private static let recordRoutines = PostgresStatement(
    """
    WITH made AS (
      SELECT split_part(object, ' ', 1) kind, substr(object, strpos(object, ' ') + 1) identity
        FROM (\(objectNames)) o WHERE object <> ALL ($2) ORDER BY object)
    INSERT INTO schema_routines (checksum, revision, triggers, functions, views)
    SELECT $1, $3, coalesce(array_agg(identity) FILTER (WHERE kind = 'trigger'), '{}'),
           coalesce(array_agg(identity) FILTER (WHERE kind = 'function'), '{}'),
           coalesce(array_agg(identity) FILTER (WHERE kind = 'view'), '{}')
      FROM made
        ON CONFLICT (is_only) DO UPDATE
       SET checksum = excluded.checksum, revision = excluded.revision, applied_at = now(), triggers = excluded.triggers,
           functions = excluded.functions, views = excluded.views
    """, writes: true)
}
