import CReelhaulPostgres
import Glibc

/// The result of one statement: a collection of rows, in the server's binary format.
package struct PostgresRows: Sendable {
  /// Owns one `PGresult`, which `PQclear` frees.
  // @unchecked: libpq does not change a result after it has returned it, and its accessors only read; `sql` is set before
  // the connection returns the result.
  final class Storage: @unchecked Sendable {
    let result: OpaquePointer

    /// For errors. The connection sets it before it returns the result.
    fileprivate(set) var sql = ""

    init(_ result: OpaquePointer) {
      self.result = result
    }

    /// The beginning of the statement, in quotation marks.
    var statementText: String {
      let text = sql.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      return text.count > 60 ? "“\(text.prefix(60))…”" : "“\(text)”"
    }

    func placeText(_ column: Int32) -> String {
      "column \(PQfname(result, column).map { String(cString: $0) } ?? "\(column)") of \(statementText)"
    }

    func isColumn(_ column: Int32, named name: String) -> Bool {
      guard let own = PQfname(result, column) else { return false }
      return name.withCString { strcmp($0, own) } == 0
    }

    deinit {
      PQclear(result)
    }
  }

  let storage: Storage

  init(_ storage: Storage) {
    self.storage = storage
  }

  func noteStatement(_ statement: PostgresStatement) {
    storage.sql = statement.sql
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
