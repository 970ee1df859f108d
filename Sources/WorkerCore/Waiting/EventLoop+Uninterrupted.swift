import ReelhaulSystem

extension EventLoop {
  /// Runs `body` to its end even where the caller is canceled meanwhile: for a call whose answer must not get lost.
  func uninterrupted<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) async throws -> Success {
    try await task(body).value
  }
}
