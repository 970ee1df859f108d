import Glibc
import ReelhaulSystem

private let actions = Lock<[@Sendable () -> Void]>([])
private let registration: Void = {
  _ = OrphanWatch.isKept
  atexit { for action in actions.withLock({ $0 }).reversed() { action() } }
  return ()
}()

/// Runs `body` when the test process ends in order: for resources that all its tests share.
package func atTestExit(_ body: @escaping @Sendable () -> Void) {
  _ = registration
  actions.withLock { $0.append(body) }
}
