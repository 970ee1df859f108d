/// A limit of bytes per second that allows a short burst. Pure: the time is a parameter, in nanoseconds.
struct TokenBucket: Hashable {
  /// Bytes per second, at least 1.
  let rate: Int64
  /// The bytes that may pass at once after a rest: the amount of a quarter of a second; of half a second for slow limits,
  /// whose transfers would else be woken up for very little.
  let burst: Int64
  private var tokens: Int64
  private var updatedAt: Int64

  init(rate: Int64, now: Int64) {
    self.rate = max(1, rate)
    burst = max(1, self.rate / 4, min(self.rate / 2, Self.slowBurst))
    tokens = burst
    updatedAt = now
  }

  private static let slowBurst: Int64 = 64 << 10

  /// Takes `bytes`, even if the bucket goes into debt.
  mutating func take(_ bytes: Int, now: Int64) {
    refill(now: now)
    tokens -= Int64(bytes)
  }

  /// Nanoseconds until the next bytes may pass.
  mutating func wait(now: Int64) -> Int64 {
    refill(now: now)
    return debt
  }

  /// Nanoseconds in which `bytes` may pass, or as many as may at once if these are fewer.
  func wait(for bytes: Int64) -> Int64 { Int64(Double(min(bytes, burst)) / Double(rate) * 1_000_000_000) }

  private var debt: Int64 {
    tokens >= 0 ? 0 : Int64((Double(-tokens) / Double(rate) * 1_000_000_000).rounded(.up))
  }

  private mutating func refill(now: Int64) {
    let elapsed = max(0, now - updatedAt)
    let gained = Double(elapsed) / 1_000_000_000 * Double(rate)
    // A time too short for a whole byte is kept for the next call.
    guard gained >= 1 else { return }
    tokens = gained >= Double(burst - tokens) ? burst : tokens + Int64(gained)
    updatedAt = now
  }
}
