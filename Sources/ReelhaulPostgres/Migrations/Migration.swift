import ReelhaulCodec

/// One step of the history of the tables. It only goes forward, and is never changed after its release.
package struct Migration: Sendable, Equatable {
  /// From 1, without gaps.
  package let number: Int
  package let name: String
  /// Any number of statements; they run in one transaction.
  package let sql: String
  /// The checksums of other contents that left the same tables behind, so that databases made by these go on from here.
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

/// The functions, views and triggers of a schema as they are to be: unlike tables they hold no data, so all of them are
/// dropped and made anew whenever they differ.
///
/// A migration must not depend on one of them: functions that tables depend on belong to the migrations.
package struct Routines: Sendable, Equatable {
  /// Statements that make them, in a schema that has none of them.
  package let sql: String
  /// The tables that every call of them touches first, in the order in which calls lock their rows. They are locked
  /// while the routines change, so that a call that has begun ends with the routines it began with.
  package let tables: [String]

  package init(sql: String, tables: [String]) {
    self.sql = sql
    self.tables = tables
  }

  package var checksum: Int64 { Int64(bitPattern: FNV1a(sql.utf8).value) }
}
