import ReelhaulCodec

/// One step of the schema's history: forward only, never changed once it has been released.
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

  /// Of the SQL, to notice that a released migration was changed.
  var checksum: Int64 { Int64(bitPattern: FNV1a(sql.utf8).value) }
}
