import CReelhaulPostgres

/// One row. Throws ``PostgresError`` if a column is NULL, or has another type than the caller asks for; the error names
/// the column and the statement. For columns that may be NULL use `try row[size]?.int64()`. ``PostgresColumns`` finds
/// columns.
package struct PostgresRow {
  let storage: PostgresRows.Storage
  let row: Int32

  /// The value, or `nil` for NULL.
  package subscript(column: PostgresColumn) -> PostgresCell? {
    get throws(PostgresError) {
      let column = column.index
      guard column >= 0, column < PQnfields(storage.result) else {
        throw PostgresError(.protocol, "no column number \(column) in \(storage.statementText)")
      }
      if PQgetisnull(storage.result, row, column) != 0 { return nil }
      let bytes = UnsafeRawBufferPointer(
        start: PQgetvalue(storage.result, row, column), count: Int(PQgetlength(storage.result, row, column)))
      return PostgresCell(
        type: PostgresType(oid: PQftype(storage.result, column)), bytes: bytes, owner: storage, column: column)
    }
  }

  func cell(_ column: PostgresColumn) throws(PostgresError) -> PostgresCell {
    guard let cell = try self[column] else {
      throw PostgresError(.protocol, "\(storage.placeText(column.index)) is NULL")
    }
    return cell
  }

  package func bool(_ column: PostgresColumn) throws(PostgresError) -> Bool { try cell(column).bool() }
  package func int16(_ column: PostgresColumn) throws(PostgresError) -> Int16 { try cell(column).int16() }
  package func int32(_ column: PostgresColumn) throws(PostgresError) -> Int32 { try cell(column).int32() }
  package func int64(_ column: PostgresColumn) throws(PostgresError) -> Int64 { try cell(column).int64() }
  package func double(_ column: PostgresColumn) throws(PostgresError) -> Double { try cell(column).double() }
  package func text(_ column: PostgresColumn) throws(PostgresError) -> String { try cell(column).text() }
  package func bytes(_ column: PostgresColumn) throws(PostgresError) -> [UInt8] { try cell(column).bytes() }
  package func uuid(_ column: PostgresColumn) throws(PostgresError) -> (high: UInt64, low: UInt64) {
    try cell(column).uuid()
  }
  /// Microseconds since 1970.
  package func timestamp(_ column: PostgresColumn) throws(PostgresError) -> Int64 { try cell(column).timestamp() }
  /// `try row.array(names) { try $0.int64() }`
  package func array<Element>(
    _ column: PostgresColumn, _ element: (PostgresCell) throws(PostgresError) -> Element
  ) throws(PostgresError) -> [Element] {
    try cell(column).array(element)
  }
}
