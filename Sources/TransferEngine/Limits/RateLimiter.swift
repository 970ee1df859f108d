import ReelhaulSystem

/// The common limit of all transfers of an engine. The threads of all its loops may call it.
final class RateLimiter: Sendable {
  private struct State {
    var bucket: SharedBucket
    var waiting: [Int: @Sendable () -> Void] = [:]
    var lastTransfer = 0
    var transfers = 0
    var isTimed = false
    var timer: LoopTimer?
  }

  /// The bytes of one grant.
  let portion: Int
  private let rate: Int64
  private let loop: EventLoop
  private let state: Lock<State>

  /// - Parameters:
  ///   - rate: bytes per second, at least 1.
  ///   - loop: runs the timer.
  init(rate: Int64, loop: EventLoop) {
    let bucket = SharedBucket(rate: rate, now: Clocks.boottime())
    portion = bucket.portion
    self.rate = rate
    state = Lock(State(bucket: bucket))
    self.loop = loop
  }

  /// The number of a new transfer.
  func enter() -> Int {
    state.withLock { state in
      state.lastTransfer += 1
      state.transfers += 1
      return state.lastTransfer
    }
  }

  /// The bytes per second of one transfer, if all use the limit equally.
  var share: Int64 { state.withLock { max(1, rate / Int64(max(1, $0.transfers))) } }

  /// Returns whether a portion is granted now. If not, calls `whenGranted` once it is granted, on some thread and
  /// never within this call. A transfer may wait for only one portion at a time.
  func take(_ transfer: Int, whenGranted: @escaping @Sendable () -> Void) -> Bool {
    let (isGranted, mustTime) = state.withLock { state in
      guard !state.bucket.take(transfer, now: Clocks.boottime()) else { return (true, false) }
      state.waiting[transfer] = whenGranted
      defer { state.isTimed = true }
      return (false, !state.isTimed)
    }
    if mustTime { loop.execute { [self] in serve() } }
    return isGranted
  }

  /// Ends the transfer. `bytes` of its last portion were not used.
  func leave(_ transfer: Int, returning bytes: Int) {
    let isIdle = state.withLock { state in
      state.waiting[transfer] = nil
      state.transfers -= 1
      state.bucket.leave(transfer, returning: bytes, now: Clocks.boottime())
      return state.isTimed && state.waiting.isEmpty
    }
    // A timer for nobody would keep the loop from ending.
    if isIdle { loop.execute { [self] in serve() } }
  }

  /// On the loop.
  private func serve() {
    let granted = state.withLock { state in
      let (served, wait) = state.bucket.serve(now: Clocks.boottime())
      state.isTimed = wait != nil
      state.timer?.cancel()
      state.timer = wait.map { wait in loop.timer(after: .nanoseconds(wait)) { [self] in serve() } }
      return served.compactMap { state.waiting.removeValue(forKey: $0) }
    }
    for body in granted { body() }
  }
}
