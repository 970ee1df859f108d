import TaskCore

/// Waits that double from `base` up to `limit`. Each is shortened by a random part of up to a half, so that the
/// workers of a fleet do not come back at the same moments.
package struct Backoff: Sendable {
  package let base: Duration
  package let limit: Duration
  private var failures = 0
  private var random: SplitMix64

  package init(base: Duration, limit: Duration, seed: UInt64) {
    self.base = base
    self.limit = limit
    random = SplitMix64(seed: seed)
  }

  /// The wait after one more failure.
  package mutating func next() -> Duration {
    let whole = min(limit, base * (1 << min(failures, 30)))
    failures += 1
    return whole * Double.random(in: 0.5...1, using: &random)
  }

  package mutating func reset() {
    failures = 0
  }
}
