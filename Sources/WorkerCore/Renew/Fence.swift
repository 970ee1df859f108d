import ReelhaulSystem
import Synchronization

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

  /// Moves the fence forward; one that lies later already stays. False, and closed for good, where it was closed, or may
  /// have been seen closed: the clock had reached it.
  package func extend(until next: BootInstant, now: () -> BootInstant = { .now }) -> Bool {
    var current = deadline.load(ordering: .acquiring)
    while current != Self.closed {
      let (done, seen) = deadline.weakCompareExchange(
        expected: current, desired: max(current, next.nanoseconds), ordering: .acquiringAndReleasing)
      if done {
        // Read last: the process may be stopped between any two lines.
        if now().nanoseconds < current { return true }
        close()
        return false
      }
      current = seen
    }
    return false
  }

  /// Forbids every later write, for good.
  package func close() {
    deadline.store(Self.closed, ordering: .releasing)
  }
}
