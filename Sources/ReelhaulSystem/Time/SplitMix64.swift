/// A small random number generator with a seed, so that what decides with it can be replayed.
///
/// Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014.
package struct SplitMix64: RandomNumberGenerator, Sendable {
  private static let gamma: UInt64 = 0x9E37_79B9_7F4A_7C15
  private var state: UInt64

  /// The first number is the one after the seed's first `skipped`.
  package init(seed: UInt64, skipping skipped: UInt64 = 0) {
    state = seed &+ skipped &* Self.gamma
  }

  package mutating func next() -> UInt64 {
    state &+= Self.gamma
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
