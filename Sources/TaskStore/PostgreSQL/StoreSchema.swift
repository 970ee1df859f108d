internal import CMigrations
package import Postgres

/// The schema that ``PostgresStore`` needs: give it to a ``Migrator``.
package enum StoreSchema {
  /// Every migration, in order.
  package static var migrations: [Migration] {
    UnsafeBufferPointer(start: rh_migrations, count: rh_migration_count).map { migration in
      let sql = UnsafeRawBufferPointer(start: migration.sql, count: migration.length)
      return Migration(
        number: Int(migration.number), name: String(cString: migration.name),
        sql: String(decoding: sql, as: UTF8.self))
    }
  }
}
