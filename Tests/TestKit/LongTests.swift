import Glibc

/// Tests that take minutes. Run them by hand: `REELHAUL_LONG_TESTS=1 swift test --no-parallel --filter ChaosTests`.
package enum LongTests {
  package static let areWanted = getenv("REELHAUL_LONG_TESTS") != nil
}
