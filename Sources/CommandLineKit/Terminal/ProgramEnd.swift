import Glibc
import ReelhaulSystem

/// An end of the program in the middle of what it does: told twice to stop, or with nobody who reads what it writes.
package enum ProgramEnd {
  private static let handlers = Lock<[@Sendable () -> Void]>([])

  /// Calls `handler` before such an end, for what nobody else would remove. It must not wait or write.
  package static func before(_ handler: @escaping @Sendable () -> Void) {
    handlers.withLock { $0.append(handler) }
  }

  /// At once: the libraries' threads still run.
  package static func exit(_ code: Int32) -> Never {
    runHandlers()
    _exit(code)
  }

  /// As `signal` ends a program that does not catch it: shells see why.
  package static func raise(_ signal: Int32) -> Never {
    runHandlers()
    Glibc.signal(signal, SIG_DFL)
    // The threads of Swift's tasks have signals blocked.
    var blocked = sigset_t()
    sigemptyset(&blocked)
    sigaddset(&blocked, signal)
    pthread_sigmask(SIG_UNBLOCK, &blocked, nil)
    Glibc.raise(signal)
    _exit(128 + signal)
  }

  private static func runHandlers() {
    for handler in handlers.withLock({ $0 }) { handler() }
  }
}
