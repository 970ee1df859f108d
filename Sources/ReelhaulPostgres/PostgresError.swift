/// An error in the work with PostgreSQL, and its consequence for the statement.
package struct PostgresError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A bounded set, usable as a metric's label.
  package struct Code: Hashable, Sendable, CustomStringConvertible {
    package let description: String

    /// There is no connection, or it was lost before anything can have been applied.
    package static let connection = Code(description: "connection")
    /// The server refused the statement; ``PostgresError/sqlState`` says why. Nothing of it was applied.
    package static let server = Code(description: "server")
    /// The reply, a value or a parameter is unexpected: the cause is a mistake in the program or an unusual server.
    package static let `protocol` = Code(description: "protocol")
    /// The deadline passed; nothing was applied.
    package static let timeout = Code(description: "timeout")
    /// The calling task was canceled; nothing was applied.
    package static let canceled = Code(description: "canceled")
    /// The connection was lost after the request was sent, and it is not known whether it was applied.
    package static let commitUnknown = Code(description: "commit_unknown")
    /// The pool is closed, or too many callers wait for it.
    package static let unavailable = Code(description: "unavailable")
    /// The configuration cannot be used; the message says what to write instead.
    package static let configuration = Code(description: "configuration")
  }

  package var code: Code
  /// Five characters, if the server gave a reason (SQLSTATE, PostgreSQL's appendix A).
  package var sqlState: String?
  package var message: String
  package var detail: String?
  package var hint: String?
  /// The violated constraint, if there is one.
  package var constraint: String?
  /// Which statement of a pipeline failed, counted from 0.
  package var statementIndex: Int?
  /// Whether the server ended the session with this error (FATAL, PANIC).
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
    case .server: isLostRace || sqlState.map(SQLState.isTransient) ?? false
    default: false
    }
  }

  /// Whether connecting again cannot succeed until somebody changes something, such as a wrong password.
  package var isPermanent: Bool { sqlState.map(SQLState.isRefusal) ?? false }

  /// A deadlock, a serialization failure, a place in a lane that a restored database has given away already, or a function
  /// or view that was replaced meanwhile: nothing was applied, and the same call may succeed at once.
  package var isLostRace: Bool {
    sqlState.map(SQLState.isLostRace) ?? false
      || sqlState == SQLState.uniqueViolation && constraint == "ready_pkey"
      || sqlState == SQLState.internalError && Self.replacements.contains(where: message.hasPrefix)
  }

  /// What PostgreSQL says, in English only, of an object that it knew when it planned the statement.
  private static let replacements = ["cache lookup failed for ", "could not open relation with OID "]

  /// Whether a schema, table, column or function that the statement needs does not exist.
  package var isForeignSchema: Bool { sqlState.map(SQLState.isForeignSchema) ?? false }

  /// Whether the cause is on the server (a missing right, a timeout, a disk that does not work) and not in a value of
  /// the statement.
  package var isServersFault: Bool { sqlState.map(SQLState.isServersFault) ?? false }

  /// What stays the same when the error happens again: the SQLSTATE, or the code if there is none.
  package var cause: String { sqlState ?? code.description }

  /// What a server lacks that answers, but cannot serve now.
  package enum Lack: Hashable, Sendable {
    /// It is a standby, or read-only.
    case writes
    /// All connections that it allows are in use.
    case connections
    /// Space, memory, or another thing that its message names.
    case resources

    package init?(sqlState: String) {
      switch sqlState {
      case SQLState.readOnly: self = .writes
      case SQLState.tooManyConnections: self = .connections
      // A new session that cannot write its files is an internal error.
      case _ where sqlState.hasPrefix("53") || sqlState == SQLState.internalError: self = .resources
      default: return nil
      }
    }
  }

  /// Nil if the server does not answer, or refuses for another reason.
  package var lack: Lack? { sqlState.flatMap { Lack(sqlState: $0) } }

  package var description: String {
    var text = sqlState.map { "\(message) (\(code), SQLSTATE \($0))" } ?? "\(message) (\(code))"
    if let detail { text += "; \(detail)" }
    if let hint { text += "; hint: \(hint)" }
    return text
  }
}

/// The meaning of SQLSTATE values for callers.
enum SQLState {
  static let statementUnknown = "26000"
  static let statementExists = "42P05"
  static let featureNotSupported = "0A000"
  static let queryCanceled = "57014"
  static let insufficientPrivilege = "42501"
  static let uniqueViolation = "23505"
  static let readOnly = "25006"
  static let tooManyConnections = "53300"
  static let internalError = "XX000"

  /// Conditions that pass: a lost race, a deadlock, a lock timeout, a server that lacks resources or shuts down, and a
  /// prepared statement that the server no longer knows.
  static func isTransient(_ state: String) -> Bool {
    switch state {
    case _ where isLostRace(state): true
    case "55P03", "57P01", "57P02", "57P03", readOnly, statementUnknown, statementExists: true
    default: state.hasPrefix("08") || state.hasPrefix("53")
    }
  }

  /// A serialization failure or a deadlock.
  static func isLostRace(_ state: String) -> Bool { state == "40001" || state == "40P01" }

  /// An unknown schema, table, function or column.
  static func isForeignSchema(_ state: String) -> Bool { ["3F000", "42P01", "42883", "42703"].contains(state) }

  /// What the settings with which a session began may cause: a read-only transaction, a search path, a timeout.
  static func mayComeFromSettings(_ state: String) -> Bool {
    state == readOnly || state == queryCanceled || isForeignSchema(state)
  }

  /// Everything but wrong data, a violated constraint, and what a function itself raises: a missing right, a timeout,
  /// transaction ids that have run out, a damaged index.
  static func isServersFault(_ state: String) -> Bool {
    if state == insufficientPrivilege { return true }
    return !isTransient(state) && !isForeignSchema(state) && !isRefusal(state)
      && !["22", "23", "P0"].contains { state.hasPrefix($0) }
  }

  /// The server does not let this user into this database.
  static func isRefusal(_ state: String) -> Bool {
    state.hasPrefix("28") || state == "3D000" || state == insufficientPrivilege
  }
}
