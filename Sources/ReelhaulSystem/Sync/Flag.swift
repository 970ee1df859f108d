import Synchronization

/// A Boolean that threads share. It is not set at first.
package final class Flag: Sendable {
  private let value = Atomic(false)

  package init() {}

  package var isSet: Bool { value.load(ordering: .acquiring) }

  package func set() { value.store(true, ordering: .releasing) }

  /// Sets it. Returns whether it was set before.
  package func testAndSet() -> Bool { value.exchange(true, ordering: .acquiringAndReleasing) }
}
