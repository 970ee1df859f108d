import ReelhaulSystem

/// Passes elements from a poll thread to the one task that waits for them.
final class Rendezvous<Element: Sendable>: Sendable {
  typealias Waiter = CheckedContinuation<Element?, any Error>

  private struct State {
    var waiter: Waiter?
    var end: Result<Void, KafkaError>?
  }

  private let state = Lock(State())

  /// Waits for an element; nil after the end. `announce` tells the thread that a task waits.
  func next(announce: @Sendable () -> Void) async throws -> Element? {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { waiter in
        let end = state.withLock { state in
          precondition(state.waiter == nil, "only one task may wait for the next batch")
          if state.end == nil { state.waiter = waiter }
          return state.end
        }
        if let end {
          waiter.resume(with: end.map { nil }.mapError { $0 })
        } else if Task.isCancelled {
          // The handler below may have run before the waiter was stored.
          cancel()
        } else {
          announce()
        }
      }
    } onCancel: {
      cancel()
    }
  }

  private func cancel() {
    take()?.resume(throwing: CancellationError())
  }

  var isAwaited: Bool { state.withLock { $0.waiter != nil } }

  /// The waiting task. The caller must resume it.
  func take() -> Waiter? { state.withLock { $0.waiter.take() } }

  /// Answers the present waiter, and all later ones.
  func finish(_ end: Result<Void, KafkaError>) {
    let waiter = state.withLock { state in
      if state.end == nil { state.end = end }
      return state.waiter.take()
    }
    waiter?.resume(with: end.map { nil }.mapError { $0 })
  }
}
