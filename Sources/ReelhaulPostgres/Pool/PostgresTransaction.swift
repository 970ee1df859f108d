import ReelhaulSystem

/// One open transaction. It begins with its first statement, in the same round trip.
/// ``PostgresPool/transaction(isolation:level:_:)`` commits it.
package actor PostgresTransaction {
  package enum Level: String, Sendable {
    case readCommitted = "READ COMMITTED"
    case repeatableRead = "REPEATABLE READ"
  }

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  private nonisolated let loop: EventLoop
  private let connection: PostgresConnection
  private let begin: PostgresStatement
  private var hasBegun = false
  /// The transaction's number on the server, once it has written something. ``CommitStatus`` is looked up with it.
  private(set) var transactionID: String?

  init(_ connection: PostgresConnection, level: Level) {
    self.connection = connection
    loop = connection.loop
    begin = PostgresStatement("BEGIN ISOLATION LEVEL \(level.rawValue)")
  }

  package func query(
    _ statement: PostgresStatement, _ values: PostgresValue..., timeout: Duration? = nil
  ) async throws(PostgresError) -> PostgresRows {
    try await pipeline([PostgresQuery(statement, values)], timeout: timeout)[0]
  }

  /// Runs statements in one round trip. After an error the transaction can only be rolled back.
  package func pipeline(
    _ queries: [PostgresQuery], timeout: Duration? = nil
  ) async throws(PostgresError) -> [PostgresRows] {
    let before = hasBegun ? 0 : 1
    hasBegun = true
    let wantsID = transactionID == nil
    var batch = before == 1 ? [PostgresQuery(begin)] : []
    batch += queries
    if wantsID { batch.append(PostgresQuery(Self.currentID)) }
    let request = Request(body: .batch(batch), timeout: timeout ?? connection.configuration.statementTimeout)
    do throws(PostgresError) {
      var rows = try await connection.run(request)
      if wantsID, let last = rows.popLast() { transactionID = try last.first?[last.onlyColumn]?.text() }
      return Array(rows.dropFirst(before))
    } catch {
      var error = error
      if let index = error.statementIndex { error.statementIndex = max(0, index - before) }
      throw error
    }
  }

  /// Runs statements as text, without parameters.
  @discardableResult
  package func script(_ sql: String, timeout: Duration? = nil) async throws(PostgresError) -> [PostgresRows] {
    if !hasBegun { _ = try await pipeline([]) }
    let results = try await connection.run(
      Request(body: .script(sql), timeout: timeout ?? connection.configuration.statementTimeout))
    if transactionID == nil { _ = try await pipeline([]) }
    return results
  }

  /// Throws ``PostgresError/Code/commitUnknown`` if the connection is lost during the COMMIT.
  func commit() async throws(PostgresError) {
    guard hasBegun else { return }
    let rows = try await connection.run(
      Request(
        body: .batch([PostgresQuery(Self.commitStatement)]), lossIsUnknown: true, ignoresCancellation: true,
        timeout: connection.configuration.statementTimeout))
    guard rows.first?.tag == "COMMIT" else {
      throw PostgresError(.server, "a statement had failed, so the transaction was rolled back", sqlState: "25P02")
    }
  }

  /// If the rollback fails, the connection is not used again.
  func rollback() async {
    guard hasBegun else { return }
    _ = try? await connection.run(
      Request(
        body: .batch([PostgresQuery("ROLLBACK")]), ignoresCancellation: true,
        timeout: connection.configuration.statementTimeout))
  }

  private static let commitStatement: PostgresStatement = "COMMIT"
  private static let currentID: PostgresStatement = "SELECT pg_current_xact_id_if_assigned()::text"
}

/// Whether a transaction whose COMMIT got no answer was applied, by PostgreSQL's own record.
enum CommitStatus: Equatable {
  case committed, aborted
  /// Its backend has not noticed yet, or is still at it.
  case inProgress
  /// Too long ago, or another server.
  case forgotten

  static let statement: PostgresStatement = "SELECT pg_xact_status($1::text::xid8)"

  init(_ rows: PostgresRows) throws(PostgresError) {
    switch try rows.first?[rows.onlyColumn]?.text() {
    case "committed": self = .committed
    case "aborted": self = .aborted
    case "in progress": self = .inProgress
    default: self = .forgotten
    }
  }
}
