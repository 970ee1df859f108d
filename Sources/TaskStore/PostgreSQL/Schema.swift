import CReelhaulSchema
import ReelhaulPostgres

/// The schema that is built into the program: the migrations of its tables, and its functions, views and triggers.
package enum Schema {
  /// In the order of their numbers, from 1.
  package static let migrations = UnsafeBufferPointer(start: rh_migrations, count: rh_migration_count).map {
    migration in
    let number = Int(migration.number)
    return Migration(
      number: number, name: String(cString: migration.name), sql: text(migration.sql, migration.length),
      formerChecksums: formerChecksums[number] ?? [])
  }

  /// The number of the last migration.
  package static var version: Int { migrations.last?.number ?? 0 }

  package static let routines = Routines(
    sql: text(rh_routines, rh_routines_length), tables: tables, revision: revisions.count)

  /// What programs lock before another of these, or alone, is first: a call that waited for the second, with the first in
  /// hand, would keep a migration that changes the first from ever being applied.
  private static let tables = [
    "intent", "cleanup", "hook_delivery", "outbox", "run", "worker", "task", "checkpoint", "lane", "bucket",
    "count_change",
  ]

  /// The checksums of the routines' revisions, from the first on. If the routines change, add a line: a line that others
  /// may have is never changed. Otherwise an older program would put its routines in the place of newer ones.
  package static let revisions: [Int64] = [
    512_714_567_182_215_895,
    -964_750_973_269_933_912,
    -3_224_722_534_857_521_642,
    9_074_085_401_255_627_656,
    2_049_530_600_024_331_127,
    2_288_676_787_084_240_567,
    4_756_949_546_930_241_635,
    7_097_273_083_511_749_362,
    -6_029_446_947_634_453_419,
    -8_200_763_587_194_893_315,
    7_453_031_204_238_784_068,
    2_346_196_438_033_275_296,
    -622_038_874_360_414_042,
    720_864_157_798_435_028,
    -1_928_405_447_968_815_854,
    -4_005_853_722_359_477_278,
    4_927_500_058_526_865_901,
    -5_009_369_528_334_008_942,
    3_231_163_799_667_585_654,
    3_565_588_768_141_578_894,
    -8_397_854_185_544_648_144,
    -7_826_789_242_663_859_588,
  ]

  package static func migrator(_ pool: PostgresPool) -> Migrator {
    Migrator(pool, migrations, routines: routines)
  }

  /// In the first version, migration 1 also made the routines. Migration 2 drops them.
  private static let formerChecksums: [Int: [Int64]] = [1: [1_248_641_941_136_920_980]]

  private static func text(_ start: UnsafePointer<CChar>?, _ length: Int) -> String {
    String(decoding: UnsafeRawBufferPointer(start: start, count: length), as: UTF8.self)
  }
}
