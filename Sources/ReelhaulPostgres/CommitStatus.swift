/// Whether a transaction was applied whose COMMIT got no answer, by PostgreSQL's own record.
enum CommitStatus: Equatable {
  case committed, aborted
  /// The server process has not noticed the lost connection, or still works on the transaction.
  case inProgress
  /// The transaction is too old for the server's record, or the server is another one.
  case forgotten

  static let statement: PostgresStatement = "SELECT pg_xact_status($1::text::xid8)"

  init(_ rows: PostgresRows) throws(PostgresError) {
    switch try rows.first?[0]?.text() {
    case "committed": self = .committed
    case "aborted": self = .aborted
    case "in progress": self = .inProgress
    default: self = .forgotten
    }
  }
}
