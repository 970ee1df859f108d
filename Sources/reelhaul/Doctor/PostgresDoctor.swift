import CommandLineKit
import Postgres
import System
import TaskCore
import TaskStore

/// Looks at the database: is it there, new enough, with our schema, with a clock like ours, and who works on it.
struct PostgresDoctor {
  private static let oldest = 150_000
  /// Microseconds.
  private static let clockTolerance: Int64 = 2_000_000

  let arguments: Arguments

  func examine() async -> [Finding] {
    do {
      let configuration = try Fleet.postgres(arguments)
      return try await Fleet.withPool(configuration) { pool in try await examine(pool, configuration.target) }
    } catch {
      let failure = CommandFailure(error)
      let status: Finding.Status = failure.code == .unreachable ? .unreachable : .failed
      return [
        Finding(
          "database", status, failure.message,
          advice: status == .unreachable
            ? "Check that PostgreSQL runs there and lets this user in (REELHAUL_POSTGRES)." : failure.hint)
      ]
    }
  }

  private func examine(_ pool: PostgresPool, _ target: String) async throws -> [Finding] {
    let before = Clocks.realtimeMicroseconds()
    let rows = try await pool.query(Self.server)
    let after = Clocks.realtimeMicroseconds()
    let version = try rows[0].int64(0)
    let database =
      version < Self.oldest
      ? Finding("database", .failed, "\(target) is too old", advice: "PostgreSQL 15 or newer is needed.")
      : Finding("database", .ok, "PostgreSQL \(version / 10_000) at \(target)")
    let clock = clock(try rows[0].int64(1) - (before + after) / 2)
    let schema = try await schema(pool)
    guard schema.status == .ok else { return [database, clock, schema] }
    return try await [database, clock, schema, workers(pool)]
  }

  private func clock(_ difference: Int64) -> Finding {
    let text = "\(DurationText.brief(.microseconds(abs(difference)))) from the database's"
    return abs(difference) < Self.clockTolerance
      ? Finding("clock", .ok, text)
      : Finding(
        "clock", .warning, text, advice: "Keep both machines' clocks right with NTP; leases do not depend on it.")
  }

  private func schema(_ pool: PostgresPool) async throws -> Finding {
    do {
      let plan = try await SchemaMigration(pool).plan()
      guard !plan.isUpToDate else { return Finding("schema", .ok, "version \(plan.current)") }
      return Finding(
        "schema", .failed, "\(plan.pending.count) migrations are pending", advice: "Apply them with 'reelhaul migrate'."
      )
    } catch let error as MigrationError {
      return Finding("schema", .failed, "\(error)")
    }
  }

  private func workers(_ pool: PostgresPool) async throws -> Finding {
    let workers = try await PostgresStore(pool: pool).workers()
    let live = workers.count(where: \.isLive)
    guard live > 0 else {
      return Finding("workers", .warning, "none", advice: "Tasks wait until one runs: 'reelhaul worker'.")
    }
    return Finding("workers", .ok, "\(live) live")
  }

  private static let server: PostgresStatement = """
    SELECT current_setting('server_version_num')::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
    """
}
