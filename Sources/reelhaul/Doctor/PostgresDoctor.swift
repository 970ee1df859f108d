import CommandLineKit
import ReelhaulKafka
import ReelhaulPostgres
import ReelhaulSystem
import TaskAdvice
import TaskCore
import TaskStore
import WorkerOptions

/// Checks the database: its version, schema, clock, settings and connections.
struct PostgresDoctor {
  /// In microseconds.
  private static let clockTolerance: Int64 = 2_000_000

  let arguments: Arguments
  /// Nil if the configured prefix is invalid.
  let topicPrefix: String?

  func examine() async -> [Finding] {
    do {
      let configuration = try Fleet.postgres(arguments)
      // Another connection would cost more than the queries, which are short.
      return try await PostgresPool.with(configuration, size: 1) { pool in
        try await examine(pool, configuration.target)
      }
    } catch {
      let failure = CommandFailure(error)
      return [
        Finding(
          "database", failure,
          advice: failure.unanswered != nil
            ? [
              "Check that PostgreSQL runs there and accepts this user (REELHAUL_POSTGRES).",
              FormerFleet.hint(.postgres, arguments),
            ].compactMap(\.self).joined(separator: " ") : failure.hint)
      ]
    }
  }

  private func examine(_ pool: PostgresPool, _ target: String) async throws -> [Finding] {
    let before = Clocks.realtimeMicroseconds()
    let server = try await pool.query(Self.server)
    let after = Clocks.realtimeMicroseconds()
    let version = try server.only.int64(server.columns["version"])
    let database: Finding
    if version / 10_000 < PostgresConfiguration.oldestServer {
      database = Finding(
        "database", .failed, "\(target) is too old",
        advice: "PostgreSQL \(PostgresConfiguration.oldestServer) or newer is needed.")
    } else if try server.only.bool(server.columns["takes_no_writes"]) {
      database = Finding(
        "database", .failed, "\(target) takes no writes: it is a standby, or read-only",
        advice: CommandFailure.nameThePrimary("REELHAUL_POSTGRES"))
    } else if try !server.only.bool(server.columns["may_write"]) {
      database = Finding(
        "database", .failed, "\(target) does not let this user write tasks, or make the tables that each day needs",
        advice: "Name the user who owns the tables, or make this one a member of that role.")
    } else {
      database = Finding("database", .ok, "PostgreSQL \(version / 10_000) at \(target)")
    }
    let clock = clock(try server.only.int64(server.columns["clock"]) - (before + after) / 2)
    let findings = [database] + (try settings(server)) + [clock]
    let schema = try await schema(pool)
    guard schema.status == .ok else { return findings + [schema] }
    let fleet = FleetDoctor(
      store: PostgresStore(pool: pool), topicPrefix: topicPrefix, audits: arguments[flag: .audit])
    return try await findings + [schema] + fleet.examine()
  }

  /// The problems of the server's settings, connections and transactions.
  private func settings(_ server: PostgresRows) throws -> [Finding] {
    var findings: [Finding] = []
    let (row, columns) = (try server.only, server.columns)
    for name in ["fsync", "full_page_writes", "autovacuum"] where try row.text(columns[name]) == "off" {
      findings.append(
        Finding(
          "settings", .warning, "\(name) is off",
          advice: "Set \(name) = on: without it the database will be damaged sooner or later."))
    }
    let isolation = try row.text(columns["isolation"])
    if !["read committed", "read uncommitted"].contains(isolation) {
      findings.append(
        Finding(
          "settings", .failed, "default_transaction_isolation is \(isolation): no command is applied",
          advice: "ALTER ROLE … SET default_transaction_isolation = 'read committed', and restart the workers."))
    }
    let (used, most) = (try row.int64(columns["sessions"]), try row.int64(columns["max_connections"]))
    if used * 10 > most * 9 {
      findings.append(
        Finding(
          "connections", .warning, "\(used) of \(most) are in use",
          advice: "Raise max_connections, or use PgBouncer: a worker needs up to five."))
    }
    let (idle, seconds) = (try row.int64(columns["long"]), try row.int64(columns["seconds"]))
    if idle > 0 {
      findings.append(
        Finding(
          "transactions", .warning,
          "\(idle) open for more than 30 s, the oldest for \(DurationText.brief(.seconds(seconds)))",
          advice: "End them (pg_stat_activity names them): while they are open, every claim costs more."))
    }
    return findings
  }

  private func clock(_ difference: Int64) -> Finding {
    let text = "\(DurationText.brief(.microseconds(abs(difference)))) from the database's"
    return abs(difference) < Self.clockTolerance
      ? Finding("clock", .ok, text)
      : Finding(
        "clock", .warning, text, advice: "Set both machines' clocks with NTP. Leases do not depend on them.")
  }

  private func schema(_ pool: PostgresPool) async throws -> Finding {
    do {
      let plan = try await SchemaMigration(pool).plan()
      guard !plan.isUpToDate else { return Finding("schema", .ok, "version \(plan.current)") }
      let count = plan.pending.count
      let what =
        switch count {
        case _ where plan.newerRevision != nil: "its functions were made by a newer program"
        case 0: "its functions are not this program's"
        case 1: "1 migration is pending"
        default: "\(count) migrations are pending"
        }
      return Finding(
        "schema", .failed, what,
        advice: plan.newerRevision == nil ? "'reelhaul migrate' brings it up to date." : "Upgrade this program.")
    } catch let failure as CommandFailure {
      return Finding("schema", .failed, failure.message, advice: failure.hint)
    } catch let error as MigrationError {
      let failure = CommandFailure(error)
      return Finding("schema", failure, advice: failure.hint)
    }
  }

  private static let server: PostgresStatement = """
    SELECT current_setting('server_version_num')::bigint AS version,
           (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS clock,
           current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
           current_setting('autovacuum') AS autovacuum,
           -- Of sessions of other users, their number is seen by everybody.
           (SELECT sum(numbackends) FROM pg_stat_database)::bigint AS sessions,
           current_setting('default_transaction_isolation') AS isolation,
           pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS takes_no_writes,
           -- NULL if there is no schema yet.
           (SELECT coalesce(bool_and(pg_has_role(relowner, 'USAGE') AND has_table_privilege(oid, 'INSERT')
                                     AND has_table_privilege(oid, 'UPDATE')), true)
                   AND coalesce(has_schema_privilege(current_schema(), 'CREATE'), true)
              FROM pg_class WHERE oid IN (to_regclass('task'), to_regclass('worker'), to_regclass('command_inbox'))) AS may_write,
           current_setting('max_connections')::bigint AS max_connections, a.long, a.seconds
      FROM (SELECT count(*) FILTER (WHERE is_long) long,
                   coalesce(max(extract(epoch FROM age)) FILTER (WHERE is_long), 0)::bigint seconds
              FROM (SELECT now() - xact_start age,
                           coalesce(datname = current_database() AND xact_start < now() - interval '30 s', false) is_long
                      FROM pg_stat_activity WHERE backend_type = 'client backend') s) a
    """
}
