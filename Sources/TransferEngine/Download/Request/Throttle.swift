import ReelhaulCurl
import ReelhaulSystem

/// Holds a task's bytes back for its own limit and for its share of the limit that all transfers keep together.
// @unchecked: touched on its loop alone.
final class Throttle: @unchecked Sendable {
  private let loop: EventLoop
  private let limiter: RateLimiter?
  private var bucket: TokenBucket?
  /// What the common limit lets pass before it is asked again.
  private var share: (number: Int, left: Int, isAsked: Bool)
  private var waiting: [CurlTransfer] = []
  /// Until the task's own limit lets bytes pass again.
  private var pacer: LoopTimer?

  /// - Parameter rate: the task's own, in bytes per second.
  init(rate: Int64?, limiter: RateLimiter?, loop: EventLoop) {
    self.loop = loop
    self.limiter = limiter
    bucket = rate.map { TokenBucket(rate: $0, now: Clocks.boottime()) }
    share = (limiter?.enter() ?? 0, 0, false)
  }

  /// Whether there is any limit.
  var isLimited: Bool { bucket != nil || limiter != nil }

  /// True where `count` bytes must wait for a limit: `transfer` is resumed in time. Else they are counted, and pass.
  func holdsBack(_ count: Int, of transfer: CurlTransfer) -> Bool {
    guard isLimited else { return false }
    let now = Clocks.boottime()
    if let wait = bucket?.wait(now: now), wait > 0 {
      waiting.append(transfer)
      if pacer == nil {
        pacer = loop.timer(after: .nanoseconds(wait)) { [self] in
          pacer = nil
          resumeWaiting()
        }
      }
      return true
    }
    guard mayShare(count) else {
      waiting.append(transfer)
      return true
    }
    bucket?.take(count, now: now)
    return false
  }

  /// The task is over: what it has not used of its share is everybody's again.
  func close() {
    // A timer that is left keeps the loop from its end.
    pacer?.cancel()
    pacer = nil
    limiter?.leave(share.number, returning: share.left)
  }

  /// Whether the common limit lets `count` bytes pass, at most a portion; if not, it is asked.
  private func mayShare(_ count: Int) -> Bool {
    guard let limiter else { return true }
    if share.left < count, !share.isAsked {
      let isGranted = limiter.take(share.number) { [self] in loop.execute { [self] in granted(limiter.portion) } }
      if isGranted { share.left += limiter.portion } else { share.isAsked = true }
    }
    guard share.left >= count else { return false }
    share.left -= count
    return true
  }

  private func granted(_ bytes: Int) {
    share.left += bytes
    share.isAsked = false
    resumeWaiting()
  }

  /// Each asks again.
  private func resumeWaiting() {
    let transfers = waiting
    waiting = []
    for transfer in transfers { transfer.resume() }
  }
}
