import Postgres
import TaskStore

/// Brings the database's schema up to date, and makes it that of one fleet.
struct SchemaMigration {
  private let migrator: Migrator
  private let store: PostgresStore

  init(_ pool: PostgresPool) {
    migrator = Migrator(pool, Schema.migrations)
    store = PostgresStore(pool: pool)
  }

  func plan() async throws -> MigrationPlan {
    try await migrator.plan()
  }

  /// `topicPrefix`: the fleet's; nil where no Kafka is configured.
  func run(topicPrefix: String?, isDry: Bool = false, say: (String) -> Void) async throws {
    let plan = try await migrator.plan()
    if let topicPrefix, plan.current > 0 { try await check(topicPrefix) }
    if plan.isUpToDate { say("schema: version \(plan.current), up to date") }
    let migrations = try await isDry ? plan.pending : migrator.apply()
    for migration in migrations {
      say("schema: migration \(migration.number), \(migration.name), \(isDry ? "is to be applied" : "applied")")
    }
    if let topicPrefix, !isDry { try await store.bind(topicPrefix: topicPrefix) }
  }

  /// Before anything is changed.
  private func check(_ topicPrefix: String) async throws {
    if let recorded = try await store.topicPrefix(), recorded != topicPrefix {
      throw StoreError.otherFleet(OtherFleet(recorded: recorded, configured: topicPrefix))
    }
  }
}
