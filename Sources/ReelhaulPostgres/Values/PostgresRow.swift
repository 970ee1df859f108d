import CReelhaulPostgres

/// One row. Throws ``PostgresError`` if a column does not exist, is NULL, or has another type than the caller asks
/// for. For columns that may be NULL use `try row[3]?.int64()`.
package struct PostgresRow {
  let storage: PostgresRows.Storage
  let row: Int32

  /// The value, or `nil` for NULL.
  package subscript(column: Int) -> PostgresCell? {
    get throws(PostgresError) {
      guard column >= 0, column < PQnfields(storage.result) else {
        throw PostgresError(.protocol, "no column \(column)")
      }
      let column = Int32(column)
      if PQgetisnull(storage.result, row, column) != 0 { return nil }
      let bytes = UnsafeRawBufferPointer(
        start: PQgetvalue(storage.result, row, column), count: Int(PQgetlength(storage.result, row, column)))
      return PostgresCell(type: PostgresType(oid: PQftype(storage.result, column)), bytes: bytes, owner: storage)
    }
  }

  private func cell(_ column: Int) throws(PostgresError) -> PostgresCell {
    guard let cell = try self[column] else { throw PostgresError(.protocol, "column \(column) is NULL") }
    return cell
  }

  package func bool(_ column: Int) throws(PostgresError) -> Bool { try cell(column).bool() }
  package func int16(_ column: Int) throws(PostgresError) -> Int16 { try cell(column).int16() }
  package func int32(_ column: Int) throws(PostgresError) -> Int32 { try cell(column).int32() }
  package func int64(_ column: Int) throws(PostgresError) -> Int64 { try cell(column).int64() }
  package func double(_ column: Int) throws(PostgresError) -> Double { try cell(column).double() }
  package func text(_ column: Int) throws(PostgresError) -> String { try cell(column).text() }
  package func bytes(_ column: Int) throws(PostgresError) -> [UInt8] { try cell(column).bytes() }
  package func uuid(_ column: Int) throws(PostgresError) -> (high: UInt64, low: UInt64) { try cell(column).uuid() }
  /// Microseconds since 1970.
  package func timestamp(_ column: Int) throws(PostgresError) -> Int64 { try cell(column).timestamp() }
  package func int8multirange(_ column: Int) throws(PostgresError) -> [Range<Int64>] {
    try cell(column).int8multirange()
  }
  /// `try row.array(2) { try $0.int64() }`
  package func array<Element>(
    _ column: Int, _ element: (PostgresCell) throws(PostgresError) -> Element
  ) throws(PostgresError) -> [Element] {
    try cell(column).array(element)
  }
}
