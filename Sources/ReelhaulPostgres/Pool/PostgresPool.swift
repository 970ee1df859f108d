import ReelhaulSystem

/// A few sessions of one database. They are opened when they are needed, and opened again when they are lost.
///
/// Sessions live on `loop`. Tasks of this loop use them without changing threads.
package final class PostgresPool: Sendable {
  package let configuration: PostgresConfiguration
  let loop: EventLoop
  private let core: PoolCore

  /// `onConnect` receives the error of every attempt to connect, or nil if it succeeded.
  package init(
    loop: EventLoop, configuration: PostgresConfiguration, size: Int,
    onConnect: @escaping @Sendable (PostgresError?) -> Void = { _ in }
  ) {
    self.loop = loop
    self.configuration = configuration
    core = PoolCore(loop: loop, configuration: configuration, size: size, onConnect: onConnect)
  }

  /// Lends a connection to `body`. If a transaction is still open afterwards, the connection is closed.
  ///
  /// Throws ``PostgresError/Code/connection`` if the server could not be reached within the acquire timeout, or, unless other
  /// sessions are lent, at once if the server refuses the user or the database.
  package func withConnection<Result>(
    isolation: isolated (any Actor)? = #isolation,
    _ body: (PostgresConnection) async throws -> Result
  ) async throws -> Result {
    let loan = try await core.acquire()
    do {
      let result = try await body(loan.connection)
      await core.release(loan)
      return result
    } catch {
      await core.release(loan)
      throw error
    }
  }

  /// Runs one statement on any connection, as its own transaction.
  package func query(
    _ statement: PostgresStatement, _ values: PostgresValue..., timeout: Duration? = nil
  ) async throws(PostgresError) -> PostgresRows {
    try await pipeline([PostgresQuery(statement, values)], timeout: timeout)[0]
  }

  /// Runs statements in one round trip and one transaction, all or nothing.
  package func pipeline(
    _ queries: [PostgresQuery], timeout: Duration? = nil
  ) async throws(PostgresError) -> [PostgresRows] {
    let loan = try await core.acquire()
    let outcome: Result<[PostgresRows], PostgresError>
    do throws(PostgresError) {
      outcome = .success(try await loan.connection.pipeline(queries, timeout: timeout))
    } catch {
      outcome = .failure(error)
    }
    await core.release(loan)
    return try outcome.get()
  }

  /// Gives up the present connections: running calls fail as if the server had ended them, and further ones connect to
  /// the first server that answers.
  package func reconnect() async {
    await core.reconnect()
  }

  /// Closes all connections. Running calls fail. Returns after their callers have given the connections back. Call it
  /// once, and not from within ``withConnection(isolation:_:)``.
  package func close() async {
    await core.close()
  }
}
