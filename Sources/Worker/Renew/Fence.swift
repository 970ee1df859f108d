import Synchronization
import System

/// Until when the tasks of one lease may touch the world, readable from any thread without a lock.
///
/// The control loop moves it forward with every renewal. Whoever is about to write (a range to the staging file, a
/// checkpoint to the store) asks ``isOpen`` first: a process that was stopped may run its writing threads before its
/// control loop, and only the clock knows.
package final class Fence: Sendable {
  private static let closed = Int64.min
  private let deadline: Atomic<Int64>

  package init(until deadline: BootInstant) {
    self.deadline = Atomic(deadline.nanoseconds)
  }

  /// Whether writing is allowed now.
  package var isOpen: Bool { isOpen(at: .now) }

  package func isOpen(at now: BootInstant) -> Bool {
    now.nanoseconds < deadline.load(ordering: .acquiring)
  }

  /// Moves the fence forward; one that is closed, or lies later already, stays.
  package func extend(until next: BootInstant) {
    var current = deadline.load(ordering: .acquiring)
    while current != Self.closed, current < next.nanoseconds {
      let (done, seen) = deadline.weakCompareExchange(
        expected: current, desired: next.nanoseconds, ordering: .acquiringAndReleasing)
      if done { return }
      current = seen
    }
  }

  /// Forbids every later write, for good.
  package func close() {
    deadline.store(Self.closed, ordering: .releasing)
  }
}
