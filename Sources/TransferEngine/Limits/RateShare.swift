import ReelhaulSystem

/// One transfer's part of the limit that all transfers have in common: portions that were granted, and what is left of
/// them.
// @unchecked: used only on its loop.
final class RateShare: @unchecked Sendable {
  /// Called when a portion is granted that ``take(_:)`` has asked for.
  var onGrant: () -> Void = {}
  private let limiter: RateLimiter?
  private let loop: EventLoop
  private let number: Int
  private var left = 0
  private var isAsked = false

  init(of limiter: RateLimiter?, loop: EventLoop) {
    self.limiter = limiter
    self.loop = loop
    number = limiter?.enter() ?? 0
  }

  /// Whether `count` bytes may pass, which must not be more than a portion; they are counted then. If not, a portion is
  /// requested.
  func take(_ count: Int) -> Bool {
    guard let limiter else { return true }
    if left < count, !isAsked {
      let isGranted = limiter.take(number) { [self] in loop.execute { [self] in granted(limiter.portion) } }
      if isGranted { left += limiter.portion } else { isAsked = true }
    }
    guard left >= count else { return false }
    left -= count
    return true
  }

  /// The transfer is over: gives the unused part back.
  func close() {
    onGrant = {}
    limiter?.leave(number, returning: left)
  }

  private func granted(_ bytes: Int) {
    left += bytes
    isAsked = false
    onGrant()
  }
}
