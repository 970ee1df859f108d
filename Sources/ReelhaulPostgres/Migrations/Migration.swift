import ReelhaulCodec

/// One step of the history of the tables. It only goes forward, and is never changed after its release.
package struct Migration: Sendable, Equatable {
  /// From 1, without gaps.
  package let number: Int
  package let name: String
  /// Any number of statements; they run in one transaction.
  package let sql: String
  /// The checksums of former contents that made the same tables. Databases that were made by them continue from here.
  package let formerChecksums: [Int64]

  package init(number: Int, name: String, sql: String, formerChecksums: [Int64] = []) {
    self.number = number
    self.name = name
    self.sql = sql
    self.formerChecksums = formerChecksums
  }

  /// A checksum of the SQL, to detect that a released migration was changed.
  package var checksum: Int64 { Int64(bitPattern: FNV1a(sql.utf8).value) }

  func matches(_ checksum: Int64) -> Bool {
    checksum == self.checksum || formerChecksums.contains(checksum)
  }
}

/// The present functions, views and triggers of a schema. They hold no data, so all of them are dropped and made again
/// whenever they differ.
///
/// A migration must not depend on one of them. Functions that tables depend on belong to the migrations.
package struct Routines: Sendable, Equatable {
  /// The statements that make the routines in a schema without any of them.
  package let sql: String
  /// The tables that calls lock before others, in that order. They are locked while the schema changes, so that a call
  /// ends with the routines with which it began, and never holds one table while it waits for another of them.
  package let tables: [String]
  /// Rises with every change of them, so that an older program knows that the database's are newer.
  package let revision: Int

  package init(sql: String, tables: [String], revision: Int = 0) {
    self.sql = sql
    self.tables = tables
    self.revision = revision
  }

  package var checksum: Int64 { Int64(bitPattern: FNV1a(sql.utf8).value) }
}
