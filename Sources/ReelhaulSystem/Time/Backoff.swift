/// Waits that double from `base` up to `limit`, each shortened at random so that a fleet does not come back in step.
package struct Backoff: Sendable {
  package let base: Duration
  package var limit: Duration
  /// The least and the greatest part of a wait that is left by the shortening.
  package let spread: ClosedRange<Double>
  /// Waits since the last ``reset()``.
  package private(set) var failures = 0
  private var random: SplitMix64

  /// `seed` is that of ``next()``.
  package init(base: Duration, limit: Duration, spread: ClosedRange<Double> = 0.5...1, seed: UInt64 = 0) {
    self.base = base
    self.limit = limit
    self.spread = spread
    random = SplitMix64(seed: seed)
  }

  /// The wait after one more failure.
  package mutating func next() -> Duration {
    next(random: Double.random(in: 0..<1, using: &random))
  }

  /// The same with a random number of the caller's, in 0...1.
  package mutating func next(random: Double) -> Duration {
    let whole = min(limit, base * (1 << min(failures, 30)))
    failures += 1
    return whole * (spread.lowerBound + (spread.upperBound - spread.lowerBound) * random)
  }

  package mutating func reset() {
    failures = 0
  }
}
