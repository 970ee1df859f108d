/// One request to a connection, and the meaning of its failure.
struct Request: Sendable {
  enum Body: Sendable {
    /// One pipeline that ends with one Sync.
    case batch([PostgresQuery])
    /// Statements as text, without parameters.
    case script(String)
  }

  var body: Body
  /// The request may end a transaction: if the connection is lost after it was sent, the outcome is unknown.
  var lossIsUnknown = false
  /// The request must run to its end even if the calling task is canceled.
  var ignoresCancellation = false
  var timeout: Duration

  /// The error for a lost connection. `wasSent`: the server may have seen the request.
  func loss(_ error: PostgresError, wasSent: Bool) -> PostgresError {
    var error = error
    if wasSent && lossIsUnknown {
      error.code = .commitUnknown
    } else if error.code == .server {
      error.code = .connection
    }
    return error
  }

  /// Whether preparing the statement again helps: the server does not know its name, already knows it, or has planned
  /// it for tables that have changed since.
  static func isStaleStatement(_ error: PostgresError) -> Bool {
    switch error.sqlState {
    case SQLState.statementUnknown, SQLState.statementExists, SQLState.featureNotSupported: true
    default: false
    }
  }
}
