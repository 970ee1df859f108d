import ReelhaulSystem

extension EventLoop {
  /// What `read` returns; nil if that takes longer than `limit`. Then `read` is canceled, and must end soon.
  func within<Value: Sendable>(
    _ limit: Duration, _ read: @escaping @Sendable () async throws -> Value
  ) async throws -> Value? {
    try await withThrowingTaskGroup(of: Value?.self) { group in
      defer { group.cancelAll() }
      group.addTask { try await read() }
      group.addTask {
        try await self.sleep(for: limit)
        return nil
      }
      return try await group.next() ?? nil
    }
  }
}
