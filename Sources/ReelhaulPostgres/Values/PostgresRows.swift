import CReelhaulPostgres

/// The result of one statement: a collection of rows, in the server's binary format.
package struct PostgresRows: Sendable {
  /// Owns one `PGresult`, which `PQclear` frees.
  // @unchecked: libpq does not change a result after it has returned it, and its accessors only read.
  final class Storage: @unchecked Sendable {
    let result: OpaquePointer

    init(_ result: OpaquePointer) {
      self.result = result
    }

    deinit {
      PQclear(result)
    }
  }

  private let storage: Storage

  init(_ storage: Storage) {
    self.storage = storage
  }

  /// `SELECT 3`, `COMMIT`.
  var tag: String { PQcmdStatus(storage.result).map { String(cString: $0) } ?? "" }
}

extension PostgresRows: RandomAccessCollection {
  package var startIndex: Int { 0 }
  package var endIndex: Int { Int(PQntuples(storage.result)) }

  package subscript(row: Int) -> PostgresRow {
    precondition(indices.contains(row), "no such row")
    return PostgresRow(storage: storage, row: Int32(row))
  }
}
