import ReelhaulCurl
import ReelhaulSystem

/// Holds a task's bytes back, to keep the task's own limit and its share of the limit that all transfers have in
/// common.
// @unchecked: used only on its loop.
final class Throttle: @unchecked Sendable {
  private let loop: EventLoop
  private let limiter: RateLimiter?
  private var bucket: TokenBucket?
  /// What a transfer that was held back by the task's own limit gets at once, in nanoseconds of the limit. Single reads
  /// would wake a slow transfer for very little.
  private let portion: Int64
  private let share: RateShare
  private var waiting: [CurlTransfer] = []
  private var isClosed = false
  /// Fires when the task's own limit lets bytes pass again.
  private var pacer: LoopTimer?
  /// The portions of the common limit are of at least this size.
  private static let most: Int64 = 16 << 10
  /// No server waits long for the next bytes of a body.
  private static let secondsAtOnce: Int64 = 10
  /// Many slow transfers wake the loop together.
  private static let slack = Duration.milliseconds(20)

  /// - Parameter rate: The task's own limit in bytes per second.
  init(rate: Int64?, limiter: RateLimiter?, loop: EventLoop) {
    self.loop = loop
    self.limiter = limiter
    bucket = rate.map { TokenBucket(rate: $0, now: Clocks.boottime()) }
    portion = bucket?.wait(for: 256 << 10) ?? 0
    share = RateShare(of: limiter, loop: loop)
    share.onGrant = { [weak self] in self?.resumeWaiting() }
  }

  /// Whether bytes wait for a limit now.
  var holds: Bool { !waiting.isEmpty }

  /// Whether there is any limit.
  var isLimited: Bool { bucket != nil || limiter != nil }

  /// The most bytes of a body that may ask to pass together.
  var sentAtOnce: Int {
    guard isLimited else { return .max }
    return Int(min(Self.most, min(Self.most, bucket?.rate ?? .max) * Self.secondsAtOnce))
  }

  /// The task's equal part of the common limit, in bytes per second; `nil` if there is none.
  var commonShare: Int64? { limiter?.share }

  /// Returns true if `count` bytes must wait for a limit; `transfer` is then resumed in time. Otherwise the bytes are
  /// counted and may pass.
  func holdsBack(_ count: Int, of transfer: CurlTransfer) -> Bool {
    guard isLimited, !isClosed else { return false }
    let now = Clocks.boottime()
    if let wait = bucket?.wait(now: now), wait > 0 || pacer != nil {
      waiting.append(transfer)
      if pacer == nil {
        pacer = loop.timer(after: .nanoseconds(wait + portion), slack: Self.slack) { [self] in
          pacer = nil
          resumeWaiting()
        }
      }
      return true
    }
    guard share.take(count) else {
      waiting.append(transfer)
      return true
    }
    bucket?.take(count, now: now)
    return false
  }

  /// The run is over: gives the unused part of its share back to the common limit.
  func close() {
    // A timer that is not canceled would keep the loop from ending.
    pacer?.cancel()
    pacer = nil
    // They end without being resumed. Their bodies hold this object.
    waiting = []
    isClosed = true
    share.close()
  }

  /// Each resumed transfer calls ``holdsBack(_:of:)`` again.
  private func resumeWaiting() {
    let transfers = waiting
    waiting = []
    for transfer in transfers { transfer.resume() }
  }
}
