import ReelhaulSystem

/// Messages on their way; ``value()`` says what became of them.
package final class PendingDeliveries: Sendable {
  private enum State {
    case open
    case awaited(CheckedContinuation<Deliveries, Never>)
    case settled(Deliveries)
  }

  private let state = Lock(State.open)

  func settle(_ deliveries: Deliveries) {
    let waiter: CheckedContinuation<Deliveries, Never>? = state.withLock { state in
      defer { state = .settled(deliveries) }
      guard case .awaited(let waiter) = state else { return nil }
      return waiter
    }
    waiter?.resume(returning: deliveries)
  }

  /// Waits until each message is acknowledged or has failed. One task at a time; it is not ended by cancellation: a record
  /// that is on its way cannot be called back.
  package func value() async -> Deliveries {
    await withCheckedContinuation { continuation in
      let deliveries: Deliveries? = state.withLock { state in
        if case .settled(let deliveries) = state { return deliveries }
        state = .awaited(continuation)
        return nil
      }
      if let deliveries { continuation.resume(returning: deliveries) }
    }
  }
}
