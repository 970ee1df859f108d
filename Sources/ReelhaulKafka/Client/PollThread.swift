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

/// Stops a poll thread. Never uses a client that has been freed.
final class StoppableHandle: Sendable {
  private let handle: KafkaHandle
  private let stopping = Lock(false)

  init(_ handle: KafkaHandle) {
    self.handle = handle
  }

  var isStopping: Bool { stopping.withLock { $0 } }

  /// Ends the thread's wait. Does nothing after ``stop()``, which has ended the wait already.
  func wake() {
    stopping.withLock { if !$0 { handle.wake() } }
  }

  /// The thread frees the client only after it has seen the flag, so the wake comes before that, under the lock.
  func stop() {
    stopping.withLock { isStopping in
      guard !isStopping else { return }
      isStopping = true
      handle.wake()
    }
  }
}

extension BootInstant {
  /// The milliseconds that are left, rounded up and never negative, as librdkafka's timeouts require.
  var millisecondsLeft: Int32 { Int32(clamping: (remaining.nanoseconds + 999_999) / 1_000_000) }
}
