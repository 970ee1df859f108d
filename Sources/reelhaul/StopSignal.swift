import Glibc
import System

/// SIGINT and SIGTERM as an event: the first asks to stop in order, the second ends the process at once.
final class StopSignal: Sendable {
  private struct State {
    var hasCome = false
    var handlers: [@Sendable () -> Void] = []
  }

  private let loop = EventLoop(name: "signals")
  private let state = Lock(State())
  private let signals = Lock<[LoopSignal]>([])

  init() {
    loop.execute { [self] in
      let signals = [SIGINT, SIGTERM].map { signal in
        LoopSignal(loop: loop, signal: signal) { [self] in come(signal) }
      }
      self.signals.withLock { $0 = signals }
    }
  }

  /// Calls `handler` once the signal comes, at once where it has come.
  func onStop(_ handler: @escaping @Sendable () -> Void) {
    let isLate = state.withLock { state in
      if !state.hasCome { state.handlers.append(handler) }
      return state.hasCome
    }
    if isLate { handler() }
  }

  func wait() async {
    await withCheckedContinuation { continuation in onStop { continuation.resume() } }
  }

  private func come(_ signal: Int32) {
    let handlers: [@Sendable () -> Void]? = state.withLock { state in
      guard !state.hasCome else { return nil }
      state.hasCome = true
      return state.handlers
    }
    // Somebody insists; children end with their parent.
    guard let handlers else { _exit(128 + signal) }
    for handler in handlers { handler() }
  }
}
