import ReelhaulSystem

/// A thread whose end a task can await without blocking.
final class PollThread: Sendable {
  private struct State {
    var hasEnded = false
    var isJoined = false
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let state: Lock<State>
  private let thread: Thread

  init(name: String, _ body: @escaping @Sendable () -> Void) {
    let state = Lock(State())
    self.state = state
    thread = Thread(name: name) {
      body()
      let waiters = state.withLock { state in
        state.hasEnded = true
        defer { state.waiters = [] }
        return state.waiters
      }
      for waiter in waiters { waiter.resume() }
    }
  }

  deinit {
    if !state.withLock({ $0.isJoined }) { thread.detach() }
  }

  /// Waits until the thread has ended.
  func ended() async {
    await withCheckedContinuation { continuation in
      let hasEnded = state.withLock { state in
        if !state.hasEnded { state.waiters.append(continuation) }
        return state.hasEnded
      }
      if hasEnded { continuation.resume() }
    }
    let mustJoin = state.withLock { state in
      defer { state.isJoined = true }
      return !state.isJoined
    }
    // The thread's body has ended, so this waits only for its last few instructions.
    if mustJoin { thread.join() }
  }
}
