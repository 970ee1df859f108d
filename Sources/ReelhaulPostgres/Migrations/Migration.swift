/// One step of the history of the tables: forward only, never changed once it has been released.
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

  /// Of the SQL, to notice that a released migration was changed.
  var checksum: Int64 { FNV1a.checksum(of: sql) }

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

  var checksum: Int64 { FNV1a.checksum(of: sql) }
}

extension FNV1a {
  fileprivate static func checksum(of text: String) -> Int64 {
    var hash = FNV1a()
    for byte in text.utf8 { hash.combine(byte) }
    return Int64(bitPattern: hash.value)
  }
}
