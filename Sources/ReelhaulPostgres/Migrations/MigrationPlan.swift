/// The migrations that a database still needs, decided from its records. Pure.
package struct MigrationPlan: Sendable, Equatable {
  /// A row of `schema_history`.
  struct Record: Sendable, Equatable {
    var number: Int
    var name: String
    var checksum: Int64
  }

  /// The row of `schema_routines`.
  struct RoutinesRecord: Sendable, Equatable {
    var checksum: Int64
    /// 0 if an older program has made them.
    var revision: Int
  }

  /// The last migration that the database has; 0 if it has none.
  package let current: Int
  /// The migrations to apply, in order.
  package let pending: [Migration]
  /// Whether the functions, views and triggers must be made again, because they differ from this program's.
  package let needsRoutines: Bool
  /// The revision of the database's functions, views and triggers, if a newer program has made them.
  package let newerRevision: Int?

  package var isUpToDate: Bool { pending.isEmpty && !needsRoutines }

  init(
    recorded: [Record], known: [Migration], routines: (recorded: RoutinesRecord?, known: Routines?)
  ) throws(MigrationError) {
    for (index, migration) in known.enumerated() where migration.number != index + 1 {
      throw .numbering(migration.number)
    }
    let recorded = recorded.sorted { $0.number < $1.number }
    if let last = recorded.last, last.number > known.count {
      throw .newerSchema(database: last.number, program: known.count)
    }
    for (index, record) in recorded.enumerated() {
      guard record.number == index + 1 else { throw .gap(index + 1) }
      guard known[index].matches(record.checksum) else { throw .changed(record.number, record.name) }
    }
    let pending = Array(known.dropFirst(recorded.count))
    current = recorded.count
    self.pending = pending
    // A migration may change tables that routines use, so the routines are made again after it.
    needsRoutines = routines.known.map { $0.checksum != routines.recorded?.checksum || !pending.isEmpty } ?? false
    let revision = routines.recorded?.revision ?? 0
    newerRevision = needsRoutines && revision > routines.known?.revision ?? 0 ? revision : nil
  }
}

/// What a migrator has done, or would do.
package struct MigrationResult: Sendable, Equatable {
  package var migrations: [Migration] = []
  /// Whether functions, views and triggers were made again.
  package var routines = false

  package init() {}

  package init(_ plan: MigrationPlan) {
    migrations = plan.pending
    routines = plan.needsRoutines
  }
}

/// Why a schema cannot be brought up to date. Nothing was changed.
package enum MigrationError: Error, Hashable, Sendable, CustomStringConvertible {
  case newerSchema(database: Int, program: Int)
  case newerRoutines(database: Int, program: Int)
  case foreignTable(String)
  case changed(Int, String)
  case gap(Int)
  case numbering(Int)
  /// The database's encoding, which is not UTF-8.
  case encoding(String)

  package var description: String {
    switch self {
    case .newerSchema(let database, let program):
      "the database's schema has version \(database), but this program knows only \(program): upgrade the program"
    case .newerRoutines(let database, let program):
      """
      the database's functions were made by a newer program: they have revision \(database), and those of this program \
      revision \(program)
      """
    case .foreignTable(let name):
      "the database's table \(name) belongs to another program: it lacks the columns number, name and checksum"
    case .changed(let number, let name):
      "migration \(number) (\(name)) was applied with different contents than in this program: the builds do not match"
    case .gap(let number): "migration \(number) is missing in the schema's history, although later ones exist"
    case .encoding(let encoding):
      """
      the database has the encoding \(encoding), in which PostgreSQL cannot read all texts: it must be UTF8 \
      (createdb --encoding=UTF8 --template=template0)
      """
    case .numbering(let number): "migration \(number) is out of order in this program"
    }
  }
}
