/// A value that one task waits for: until it is there, or until that task is canceled, whichever is first.
package final class Awaited<Value: Sendable>: Sendable {
  private enum State {
    case open
    case waiting(CheckedContinuation<Value, any Error>)
    case settled(Result<Value, any Error>)
  }

  private let state = Lock(State.open)

  package init() {}

  package var value: Value {
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

  /// Returns whether this is the first result, which alone counts.
  @discardableResult
  package func settle(_ result: Result<Value, any Error>) -> Bool {
    let (isFirst, waiting) = state.withLock { state -> (Bool, CheckedContinuation<Value, any Error>?) in
      switch state {
      case .settled: return (false, nil)
      case .open:
        state = .settled(result)
        return (true, nil)
      case .waiting(let waiting):
        state = .settled(result)
        return (true, waiting)
      }
    }
    waiting?.resume(with: result)
    return isFirst
  }
}
