/// One SQL statement with parameters `$1`, `$2` …. Make it once, as a `static let`: its hash names the prepared
/// statement on every connection.
package struct PostgresStatement: Sendable, ExpressibleByStringLiteral {
  package let sql: String
  /// Whether the statement changes data. If the connection is lost after such a statement was sent outside a
  /// transaction, the error is ``PostgresError/Code/commitUnknown`` instead of ``PostgresError/Code/connection``.
  package let writes: Bool
  let hash: UInt64

  package init(_ sql: String, writes: Bool = false) {
    self.sql = sql
    self.writes = writes
    var hash = FNV1a()
    for byte in sql.utf8 { hash.combine(byte) }
    self.hash = hash.value
  }

  package init(stringLiteral sql: String) {
    self.init(sql)
  }

  /// The statement with parameters, for a pipeline.
  package func callAsFunction(_ values: PostgresValue...) -> PostgresQuery {
    PostgresQuery(self, values)
  }
}

/// A statement and its parameters.
package struct PostgresQuery: Sendable {
  package let statement: PostgresStatement
  package let values: [PostgresValue]

  package init(_ statement: PostgresStatement, _ values: [PostgresValue] = []) {
    self.statement = statement
    self.values = values
  }
}

/// FNV-1a, 64 bits.
struct FNV1a {
  private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

  mutating func combine(_ byte: UInt8) {
    value = (value ^ UInt64(byte)) &* 0x0000_0100_0000_01b3
  }

  mutating func combine(_ number: UInt64) {
    for shift in stride(from: 0, to: 64, by: 8) { combine(UInt8(truncatingIfNeeded: number >> UInt64(shift))) }
  }
}
