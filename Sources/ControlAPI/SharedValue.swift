import ReelhaulSystem

/// A value that is read once, for all who wait for it. Who is canceled meanwhile gets `CancellationError`, and the others
/// still get the value.
final class SharedValue<Value: Sendable>: Sendable {
  private struct State {
    var result: Result<Value, any Error>?
    var waiting: [Awaited<Value>] = []
  }

  private let state = Lock(State())

  /// Begins to read at once, and not on the loop of the caller, which may end before.
  init(_ read: @escaping @Sendable () async throws -> Value) {
    Task {
      do { settle(.success(try await read())) } catch { settle(.failure(error)) }
    }
  }

  var value: Value {
    get async throws {
      let awaited = Awaited<Value>()
      let result = state.withLock { state in
        if state.result == nil { state.waiting.append(awaited) }
        return state.result
      }
      if let result { return try result.get() }
      return try await awaited.value
    }
  }

  private func settle(_ result: Result<Value, any Error>) {
    let waiting = state.withLock { state in
      state.result = result
      defer { state.waiting = [] }
      return state.waiting
    }
    for one in waiting { one.settle(result) }
  }
}
