import ReelhaulSystem
import Synchronization

/// The time until which the tasks of one lease may write. Any thread can read it without a lock.
///
/// The control loop moves it forward with every renewal. Code that writes (a range to the staging file, a checkpoint
/// to the store) checks ``isOpen`` first: in a process that was stopped, writing threads may run before the control
/// loop, and only the clock shows that time has passed.
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

  /// Moves the fence forward; a later deadline stays. Returns false, and closes the fence for good, if it was closed
  /// or may have been seen closed because the clock had reached it.
  package func extend(until next: BootInstant, now: () -> BootInstant = { .now }) -> Bool {
    var current = deadline.load(ordering: .acquiring)
    while current != Self.closed {
      let (done, seen) = deadline.weakCompareExchange(
        expected: current, desired: max(current, next.nanoseconds), ordering: .acquiringAndReleasing)
      if done {
        // Read last, because the process may be stopped between any two lines.
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
