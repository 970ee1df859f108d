import ReelhaulCodec

/// One step of the schema's history. It only goes forward, and is never changed after its release.
package struct Migration: Sendable, Equatable {
  /// From 1, without gaps.
  package let number: Int
  package let name: String
  /// Any number of statements; they run in one transaction.
  package let sql: String

  package init(number: Int, name: String, sql: String) {
    self.number = number
    self.name = name
    self.sql = sql
  }

  /// A checksum of the SQL, to detect that a released migration was changed.
  var checksum: Int64 { Int64(bitPattern: FNV1a(sql.utf8).value) }
}
