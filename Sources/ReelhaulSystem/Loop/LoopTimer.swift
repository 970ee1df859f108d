import CReelhaulUV

/// A timer of an ``EventLoop``. It runs until it is canceled, or until it has fired if it does not repeat.
// @unchecked: touched only on the loop's thread, which `cancel` checks.
package final class LoopTimer: @unchecked Sendable {
  private let loop: EventLoop
  private let handle = LoopHandle<uv_timer_t>()
  private let body: @Sendable () -> Void
  private let repeats: Bool

  fileprivate init(
    loop: EventLoop, after: Duration, slack: Duration, every: Duration?, body: @escaping @Sendable () -> Void
  ) {
    self.loop = loop
    self.body = body
    repeats = every != nil
    uv_timer_init(loop.raw, handle.open(context: self))
    uv_update_time(loop.raw)
    uv_timer_start(
      handle.pointer, { LoopHandle.from($0).owner(as: LoopTimer.self)?.fire() },
      Self.delay(after, slack: slack.wholeMilliseconds, now: uv_now(loop.raw)),
      every.map { max(1, $0.wholeMilliseconds) } ?? 0)
  }

  /// Whole milliseconds of libuv's clock. With `slack`, the timer fires at a multiple of it, so that many timers share one
  /// wake-up of the loop.
  static func delay(_ after: Duration, slack: UInt64, now: UInt64) -> UInt64 {
    // The clock counts whole milliseconds, rounded down. One more millisecond keeps a timer from firing early.
    let least = after > .zero ? after.wholeMilliseconds + 1 : 0
    guard slack > 1 else { return least }
    return (now + least + slack - 1) / slack * slack - now
  }

  private func fire() {
    if !repeats { handle.close() }
    body()
  }

  /// Stops the timer for good. A second call does nothing.
  package func cancel() {
    loop.checkIsolated()
    handle.close()
  }
}

extension EventLoop {
  /// Calls `body` every `interval`, until the task that it returns is canceled.
  package func repeating(
    every interval: Duration, _ body: @escaping @Sendable () -> Void
  ) -> Task<Void, any Error> {
    task { [self] in
      while true {
        try await sleep(for: interval)
        body()
      }
    }
  }

  /// Runs `body` on the loop once `after` has passed, never earlier, and then repeatedly if `every` is given. Call it
  /// on the loop.
  ///
  /// - Parameter slack: How much later it may fire at first, so that many timers fire together and the loop wakes up once
  ///   for all of them.
  @discardableResult
  package func timer(
    after: Duration, slack: Duration = .zero, every: Duration? = nil, _ body: @escaping @Sendable () -> Void
  ) -> LoopTimer {
    LoopTimer(loop: self, after: after, slack: slack, every: every, body: body)
  }

  /// Suspends the caller. Throws `CancellationError` as soon as the caller's task is canceled.
  package func sleep(for duration: Duration) async throws {
    let sleeper = Sleeper()
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        onLoopNow { sleeper.start(continuation, on: self, for: duration) }
      }
    } onCancel: {
      execute { sleeper.finish(throwing: CancellationError()) }
    }
  }

  /// Runs `body` at once if the caller is on the loop, and soon otherwise.
  package func onLoopNow(_ body: @escaping @Sendable () -> Void) {
    if onLoop { body() } else { execute(body) }
  }
}

/// One call of `sleep`. It is resumed once, by its timer or by cancellation, whichever comes first.
// @unchecked: touched only on the loop's thread.
private final class Sleeper: @unchecked Sendable {
  private var continuation: CheckedContinuation<Void, any Error>?
  private var timer: LoopTimer?
  private var isOver = false

  func start(_ continuation: CheckedContinuation<Void, any Error>, on loop: EventLoop, for duration: Duration) {
    guard !isOver else {
      continuation.resume(throwing: CancellationError())
      return
    }
    self.continuation = continuation
    timer = loop.timer(after: duration) { [self] in finish(throwing: nil) }
  }

  func finish(throwing error: (any Error)?) {
    guard !isOver else { return }
    isOver = true
    timer?.cancel()
    timer = nil
    let waiting = continuation
    continuation = nil
    if let error { waiting?.resume(throwing: error) } else { waiting?.resume() }
  }
}

extension Duration {
  /// Milliseconds, rounded up and never negative.
  fileprivate var wholeMilliseconds: UInt64 {
    let (seconds, attoseconds) = components
    guard seconds >= 0, attoseconds >= 0 else { return 0 }
    return UInt64(min(seconds, 1 << 50)) * 1000 + UInt64((attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
  }
}
