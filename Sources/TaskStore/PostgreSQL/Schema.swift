internal import CMigrations
package import Postgres

/// The schema's history, as it is built into the program.
package enum Schema {
  /// In order, from 1.
  package static let migrations: [Migration] = (0..<rh_migration_count).map { index in
    let migration = rh_migration_at(index).pointee
    let sql = UnsafeRawBufferPointer(start: migration.sql, count: migration.length)
    return Migration(
      number: Int(migration.number), name: String(cString: migration.name), sql: String(decoding: sql, as: UTF8.self))
  }
}
