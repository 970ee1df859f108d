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
    for migration in plan.pending { say("schema: migration \(migration.number), \(migration.name)") }
    guard !isDry, !plan.isUpToDate else { return }
    let applied = try await migrator.apply()
    say("schema: \(applied.count) applied")
  }
}
