/// A failure of the connection or of a statement, with PostgreSQL's own description.
package struct PostgresError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A code of a bounded set, usable as a metric's label.
  package struct Code: Hashable, Sendable, CustomStringConvertible {
    package let description: String

    /// There is no connection, or it was lost before anything can have been applied.
    package static let connection = Code(description: "connection")
    /// The server refused the statement; ``PostgresError/sqlState`` names the reason. Nothing was applied.
    package static let server = Code(description: "server")
    /// A reply, a value or a parameter has an unexpected form: a defect of the program, or an unknown server.
    package static let `protocol` = Code(description: "protocol")
    /// The deadline passed; nothing was applied.
    package static let timeout = Code(description: "timeout")
    /// The calling task was canceled; nothing was applied.
    package static let canceled = Code(description: "canceled")
    /// The connection was lost after the request was sent. It is not known whether the request was applied.
    package static let commitUnknown = Code(description: "commit_unknown")
    /// The pool is closed, or too many callers wait for it.
    package static let unavailable = Code(description: "unavailable")
    /// The configuration cannot be used; the message says what to write instead.
    package static let configuration = Code(description: "configuration")
  }

  package var code: Code
  /// The SQLSTATE (five characters; PostgreSQL's appendix A), if the server gave one.
  package var sqlState: String?
  package var message: String
  package var detail: String?
  package var hint: String?
  /// The violated constraint, if there is one.
  package var constraint: String?
  /// The index of the failed statement in its pipeline, from 0.
  package var statementIndex: Int?
  /// The server ended the session with this error (FATAL, PANIC).
  package var endsSession = false

  package init(_ code: Code, _ message: String, sqlState: String? = nil) {
    self.code = code
    self.message = message
    self.sqlState = sqlState
  }

  /// Whether nothing was applied and the same call may succeed a little later.
  package var isRetryable: Bool {
    switch code {
    case .connection, .timeout, .unavailable: !isPermanent
    case .server: sqlState.map(SQLState.isTransient) ?? false
    default: false
    }
  }

  /// Whether connecting again is useless until somebody changes something: a wrong password, a missing database.
  package var isPermanent: Bool { sqlState.map(SQLState.isRefusal) ?? false }

  package var description: String {
    var text = sqlState.map { "\(message) (\(code), SQLSTATE \($0))" } ?? "\(message) (\(code))"
    if let detail { text += "; \(detail)" }
    if let hint { text += "; hint: \(hint)" }
    return text
  }
}

/// The meaning of SQLSTATE classes.
enum SQLState {
  static let statementUnknown = "26000"
  static let statementExists = "42P05"
  static let featureNotSupported = "0A000"
  static let queryCanceled = "57014"

  /// Whether the condition passes by itself: a lost race, a deadlock, a lock timeout, a server that lacks resources or
  /// shuts down, a prepared statement that the server no longer knows.
  static func isTransient(_ state: String) -> Bool {
    switch state {
    case "40001", "40P01", "55P03", "57P01", "57P02", "57P03", "25006", statementUnknown, statementExists: true
    default: state.hasPrefix("08") || state.hasPrefix("53")
    }
  }

  /// Whether the server refuses this user or this database.
  static func isRefusal(_ state: String) -> Bool {
    state.hasPrefix("28") || state == "3D000" || state == "42501"
  }
}
