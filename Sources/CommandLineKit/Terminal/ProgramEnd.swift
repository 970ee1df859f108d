import Glibc
import ReelhaulSystem

/// Ends the program in the middle of its work, because it got two signals to stop, or because its output has no reader
/// any more.
package enum ProgramEnd {
  private static let handlers = Lock<[@Sendable () -> Void]>([])

  /// Calls `handler` before such an end, to remove files that nothing else would remove. It must not wait or write.
  package static func before(_ handler: @escaping @Sendable () -> Void) {
    handlers.withLock { $0.append(handler) }
  }

  /// Ends at once, because the libraries' threads still run.
  package static func exit(_ code: Int32) -> Never {
    runHandlers()
    _exit(code)
  }

  /// Ends like a program that does not catch `signal`, so that shells see the reason.
  package static func raise(_ signal: Int32) -> Never {
    runHandlers()
    Glibc.signal(signal, SIG_DFL)
    // The threads of Swift's tasks block signals.
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
