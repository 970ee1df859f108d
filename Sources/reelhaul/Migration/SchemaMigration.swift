import ReelhaulPostgres
import TaskStore

/// Brings the database's schema up to date, and binds it to one fleet.
struct SchemaMigration {
  private let migrator: Migrator
  private let store: PostgresStore
  private let pool: PostgresPool

  init(_ pool: PostgresPool) {
    self.pool = pool
    migrator = Schema.migrator(pool)
    store = PostgresStore(pool: pool)
  }

  func plan() async throws -> MigrationPlan {
    let place = try await pool.query(Self.place)[0]
    guard try place.bool(0) else {
      let names = try place.text(1)
      throw CommandFailure(
        .unreachable, "the database has no schema \(names), or this user may not use it",
        hint: "Create it first: CREATE SCHEMA \(names.split(separator: ", ").last ?? "");")
    }
    return try await migrator.plan()
  }

  /// Whether a schema exists in which tables can be made, and the schemas that are searched.
  private static let place: PostgresStatement = "SELECT current_schema() IS NOT NULL, current_setting('search_path')"

  /// `topicPrefix`: the fleet's prefix; nil if no Kafka is configured.
  func run(topicPrefix: String?, isDry: Bool = false, say: (String) -> Void) async throws {
    let plan = try await plan()
    if let topicPrefix, plan.current > 0 { try await check(topicPrefix) }
    if plan.isUpToDate { say("schema: version \(plan.current), up to date") }
    let result = try await isDry ? MigrationResult(plan) : migrator.apply()
    for migration in result.migrations {
      say("schema: migration \(migration.number), \(migration.name), \(isDry ? "is to be applied" : "applied")")
    }
    if result.routines { say("schema: functions, views and triggers \(isDry ? "would be replaced" : "replaced")") }
    if let topicPrefix, !isDry { try await store.bind(topicPrefix: topicPrefix) }
  }

  /// Checks the prefix before anything is changed.
  private func check(_ topicPrefix: String) async throws {
    if let recorded = try await store.topicPrefix(), recorded != topicPrefix {
      throw StoreError.otherFleet(OtherFleet(recorded: recorded, configured: topicPrefix))
    }
  }
}
