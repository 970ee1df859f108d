import ReelhaulSystem

/// A value that one task waits for: until it is there, or until that task is canceled, whichever is first.
final class Awaited<Value: Sendable>: Sendable {
  private enum State {
    case open
    case waiting(CheckedContinuation<Value, any Error>)
    case settled(Result<Value, any Error>)
  }

  private let state = Lock(State.open)

  var value: Value {
    get async throws {
      try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { waiting in
          let result = state.withLock { state -> Result<Value, any Error>? in
            if case .settled(let result) = state { return result }
            state = .waiting(waiting)
            return nil
          }
          if let result { waiting.resume(with: result) }
        }
      } onCancel: {
        settle(.failure(CancellationError()))
      }
    }
  }

  /// Only the first result counts.
  func settle(_ result: Result<Value, any Error>) {
    let waiting = state.withLock { state -> CheckedContinuation<Value, any Error>? in
      switch state {
      case .settled: return nil
      case .open:
        state = .settled(result)
        return nil
      case .waiting(let waiting):
        state = .settled(result)
        return waiting
      }
    }
    waiting?.resume(with: result)
  }
}

extension Task where Failure == any Error {
  /// The value, for one of several who wait for it. If that one is canceled, the others still get it.
  var sharedValue: Success {
    get async throws {
      let awaited = Awaited<Success>()
      Task<Void, Never> { awaited.settle(await result) }
      return try await awaited.value
    }
  }
}
