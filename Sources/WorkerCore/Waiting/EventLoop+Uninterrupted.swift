import ReelhaulSystem

extension EventLoop {
  /// Runs `body` to its end even if the caller is canceled meanwhile. For a call whose answer must not be lost.
  func uninterrupted<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) async throws -> Success {
    try await task(body).value
  }
}
