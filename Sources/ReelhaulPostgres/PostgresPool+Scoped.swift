import ReelhaulSystem

extension PostgresPool {
  /// Lends `body` a pool on a new event loop. Both are closed when `body` ends.
  ///
  /// Connects first, so that a refusal is reported as such, and not as the failure of a later call.
  package static func with<Result: Sendable>(
    _ configuration: PostgresConfiguration, size: Int = 2, _ body: @Sendable (PostgresPool) async throws -> Result
  ) async throws -> Result {
    let loop = EventLoop(name: "control")
    let pool = PostgresPool(loop: loop, configuration: configuration, size: size)
    let outcome: Swift.Result<Result, any Error>
    do {
      _ = try await pool.query("SELECT 1")
      outcome = .success(try await body(pool))
    } catch {
      outcome = .failure(error)
    }
    await pool.close()
    loop.shutdown()
    return try outcome.get()
  }
}
