/// What a connection is asked to do in one go, and what it means when that fails.
struct Request: Sendable {
  enum Body: Sendable {
    /// One pipeline, ended by one Sync.
    case batch([PostgresQuery])
    /// Statements as text, without parameters.
    case script(String)
  }

  var body: Body
  /// The request may end a transaction: where the connection is lost after it was sent, nobody knows the outcome.
  var lossIsUnknown = false
  /// It must run to its end whatever happens to the calling task.
  var ignoresCancellation = false
  var timeout: Duration

  /// Failing with `error` for want of a connection; `wasSent` when the server may have seen the request.
  func loss(_ error: PostgresError, wasSent: Bool) -> PostgresError {
    var error = error
    if wasSent && lossIsUnknown {
      error.code = .commitUnknown
    } else if error.code == .server {
      error.code = .connection
    }
    return error
  }

  /// A named statement the server does not know, knows already, or has planned for tables that have changed since:
  /// preparing it anew helps.
  static func isStaleStatement(_ error: PostgresError) -> Bool {
    switch error.sqlState {
    case SQLState.statementUnknown, SQLState.statementExists, SQLState.featureNotSupported: true
    default: false
    }
  }
}
