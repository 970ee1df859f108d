import TaskCore

/// Waits that double from `base` up to `limit`, each shortened by up to a half at random so that a fleet does not
/// come back in step.
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
