import ReelhaulSystem

/// Messages that are being sent. ``value()`` returns their results.
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

  /// Waits until each message is acknowledged or has failed. Only one task may call it at a time. Cancellation does
  /// not end it, because a record that is being sent cannot be called back.
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
