import CReelhaulPostgres

/// The columns of one result, by name. A name is looked up once for a result, and costs nothing for a row.
package struct PostgresColumns {
  let storage: PostgresRows.Storage

  /// The column with this name. Throws ``PostgresError`` unless there is exactly one.
  package subscript(name: String) -> PostgresColumn {
    get throws(PostgresError) {
      var found: Int32?
      for index in 0..<PQnfields(storage.result) where storage.isColumn(index, named: name) {
        guard found == nil else { throw PostgresError(.protocol, "two columns \(name) of \(storage.statementText)") }
        found = index
      }
      guard let found else { throw PostgresError(.protocol, "no column \(name) in \(storage.statementText)") }
      return PostgresColumn(index: found)
    }
  }
}

/// The place of a column in the rows of one result.
package struct PostgresColumn: Sendable {
  let index: Int32

  init(index: Int32) {
    self.index = index
  }

  /// Only for tests, which read what they have just written: a statement whose columns change their order would swap
  /// values.
  package init(testing position: Int) {
    index = Int32(clamping: position)
  }
}

extension PostgresRows {
  package var columns: PostgresColumns { PostgresColumns(storage: storage) }

  /// Every row as a value. `reader` looks the columns up, once, and returns what reads a row.
  package func decode<Value>(_ reader: (PostgresColumns) throws -> (PostgresRow) throws -> Value) throws -> [Value] {
    try map(reader(columns))
  }

  /// The one column of a statement that has one, such as the call of a function. Throws ``PostgresError`` if it has more.
  package var onlyColumn: PostgresColumn {
    get throws(PostgresError) {
      let count = PQnfields(storage.result)
      guard count == 1 else {
        throw PostgresError(.protocol, "\(count) columns instead of one in \(storage.statementText)")
      }
      return PostgresColumn(index: 0)
    }
  }

  /// The row of a statement that returns one.
  package var only: PostgresRow {
    get throws(PostgresError) {
      guard let row = first else { throw PostgresError(.protocol, "no row from \(storage.statementText)") }
      return row
    }
  }

  /// The value of a statement that returns one row of one column; it must not be NULL.
  package func value<Value>(_ read: (PostgresCell) throws -> Value) throws -> Value {
    try read(try only.cell(try onlyColumn))
  }

  /// The values of a statement with one column; none may be NULL.
  package func values<Value>(_ read: (PostgresCell) throws -> Value) throws -> [Value] {
    let column = try onlyColumn
    return try map { try read(try $0.cell(column)) }
  }
}
