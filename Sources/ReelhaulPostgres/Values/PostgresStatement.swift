import ReelhaulCodec

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
    hash = FNV1a(sql.utf8).value
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
