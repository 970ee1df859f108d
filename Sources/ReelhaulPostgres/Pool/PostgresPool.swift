import ReelhaulSystem

/// A few sessions of one database, opened when they are needed and opened again when they are lost.
///
/// Sessions live on `loop`; tasks of that loop use them without a thread hop.
package final class PostgresPool: Sendable {
  package let configuration: PostgresConfiguration
  let loop: EventLoop
  private let core: PoolCore

  /// `onConnect` is told of every attempt to connect: nil where it succeeded.
  package init(
    loop: EventLoop, configuration: PostgresConfiguration, size: Int,
    onConnect: @escaping @Sendable (PostgresError?) -> Void = { _ in }
  ) {
    self.loop = loop
    self.configuration = configuration
    core = PoolCore(loop: loop, configuration: configuration, size: size, onConnect: onConnect)
  }

  /// Lends a connection to `body`. One that comes back with a transaction open is closed.
  ///
  /// Throws ``PostgresError/Code/connection`` when the server could not be reached within the acquire timeout, at
  /// once when it refuses the user or the database.
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

  /// Runs one statement on some connection, as a transaction of its own.
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

  /// Closes all connections: calls that are under way fail. Returns once their callers have given them back. Once; not
  /// from within ``withConnection(isolation:_:)``.
  package func close() async {
    await core.close()
  }
}
