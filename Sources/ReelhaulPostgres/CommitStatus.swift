/// Whether a transaction whose COMMIT got no answer was applied, by PostgreSQL's own record.
enum CommitStatus: Equatable {
  case committed, aborted
  /// Its backend has not noticed yet, or is still at it.
  case inProgress
  /// Too long ago, or another server.
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
