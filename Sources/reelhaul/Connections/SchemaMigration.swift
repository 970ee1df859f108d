import Postgres
import TaskStore

/// Brings the database's schema up to date.
struct SchemaMigration {
  private let migrator: Migrator

  init(_ pool: PostgresPool) {
    migrator = Migrator(pool, Schema.migrations)
  }

  func plan() async throws -> MigrationPlan {
    try await migrator.plan()
  }

  func run(isDry: Bool = false, say: (String) -> Void) async throws {
    let plan = try await migrator.plan()
    if plan.isUpToDate { say("schema: version \(plan.current), up to date") }
    guard !plan.isUpToDate else { return }
    let migrations = try await isDry ? plan.pending : migrator.apply()
    for migration in migrations {
      say("schema: migration \(migration.number), \(migration.name), \(isDry ? "is to be applied" : "applied")")
    }
  }
}
