import ReelhaulSystem

extension PostgresPool {
  /// Lends `body` a pool on a new event loop. Both are closed when `body` ends.
  ///
  /// Connects first, so that a refusal is reported as such, and not as the failure of a later call. If the server cannot
  /// be reached yet, this throws without `onOutage`; otherwise `body` begins after that was told.
  package static func with<Result: Sendable>(
    _ configuration: PostgresConfiguration, size: Int = 2, onOutage: (@Sendable (PostgresError) -> Void)? = nil,
    _ body: @Sendable (PostgresPool) async throws -> Result
  ) async throws -> Result {
    let loop = EventLoop(name: "control")
    let pool = PostgresPool(loop: loop, configuration: configuration, size: size)
    let outcome: Swift.Result<Result, any Error>
    do {
      do throws(PostgresError) {
        _ = try await pool.query("SELECT 1")
      } catch {
        guard let onOutage, error.isRetryable else { throw error }
        onOutage(error)
      }
      outcome = .success(try await body(pool))
    } catch {
      outcome = .failure(error)
    }
    await pool.close()
    loop.shutdown()
    return try outcome.get()
  }
}
