import ReelhaulPostgres
import TaskStore

/// Brings the database's schema up to date, and binds it to one fleet.
struct SchemaMigration {
  private let migrator: Migrator
  private let store: PostgresStore
  private let pool: PostgresPool

  /// `downgrades`: whether functions of a newer program are replaced.
  init(_ pool: PostgresPool, downgrades: Bool = false) {
    self.pool = pool
    var migrator = Schema.migrator(pool)
    migrator.replacesNewerRoutines = downgrades
    self.migrator = migrator
    store = PostgresStore(pool: pool)
  }

  func plan() async throws -> MigrationPlan {
    let place = try await pool.query(Self.place)
    guard try place.only.bool(place.columns["is_there"]) else {
      let names = try place.only.text(place.columns["names"])
      throw CommandFailure(
        .unreachable, "the database has no schema \(names), or this user may not use it",
        hint: "Create it first: CREATE SCHEMA \(names.split(separator: ", ").last ?? "");")
    }
    return try await migrator.plan()
  }

  /// Whether a schema exists in which tables can be made, and the schemas that are searched.
  private static let place: PostgresStatement = """
    SELECT current_schema() IS NOT NULL AS is_there, current_setting('search_path') AS names
    """

  /// `topicPrefix`: the fleet's prefix; nil if no Kafka is configured.
  @discardableResult
  func run(topicPrefix: String?, isDry: Bool = false) async throws -> SchemaReport {
    let plan = try await plan()
    try migrator.check(plan)
    if let topicPrefix, plan.current > 0 { try await check(topicPrefix) }
    let result = try await isDry ? MigrationResult(plan) : migrator.apply()
    if let topicPrefix, !isDry { try await store.bind(topicPrefix: topicPrefix) }
    return SchemaReport(result, isDry: isDry)
  }

  /// Checks the prefix before anything is changed.
  private func check(_ topicPrefix: String) async throws {
    if let recorded = try await store.topicPrefix(), recorded != topicPrefix {
      throw StoreError.otherFleet(OtherFleet(recorded: recorded, configured: topicPrefix))
    }
  }
}
