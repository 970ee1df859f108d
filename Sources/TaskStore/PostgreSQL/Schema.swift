import CReelhaulSchema
import ReelhaulPostgres

/// The schema's history, as it is built into the program.
package enum Schema {
  /// In order, from 1.
  package static let migrations = UnsafeBufferPointer(start: rh_migrations, count: rh_migration_count).map {
    migration in
    let sql = UnsafeRawBufferPointer(start: migration.sql, count: migration.length)
    return Migration(
      number: Int(migration.number), name: String(cString: migration.name), sql: String(decoding: sql, as: UTF8.self))
  }
}
