import CReelhaulSchema
import ReelhaulPostgres

/// The schema as it is built into the program: the history of its tables, and its functions, views and triggers.
package enum Schema {
  /// In order, from 1.
  package static let migrations = UnsafeBufferPointer(start: rh_migrations, count: rh_migration_count).map {
    migration in
    let number = Int(migration.number)
    return Migration(
      number: number, name: String(cString: migration.name), sql: text(migration.sql, migration.length),
      formerChecksums: formerChecksums[number] ?? [])
  }

  package static let routines = Routines(
    sql: text(rh_routines, rh_routines_length), tables: ["worker", "run", "task", "checkpoint", "lane", "bucket"])

  package static func migrator(_ pool: PostgresPool) -> Migrator {
    Migrator(pool, migrations, routines: routines)
  }

  /// 1: the first version, whose one migration made the routines, too. The second migration drops those.
  private static let formerChecksums: [Int: [Int64]] = [1: [1_248_641_941_136_920_980]]

  private static func text(_ start: UnsafePointer<CChar>?, _ length: Int) -> String {
    String(decoding: UnsafeRawBufferPointer(start: start, count: length), as: UTF8.self)
  }
}
