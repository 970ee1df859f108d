import Testing

@testable import TransferEngine

@Suite struct TokenBucketTests {
  static let second: Int64 = 1_000_000_000

  @Test("a burst passes, and then the rate holds")
  func aBurstPassesAndThenTheRateHolds() {
    var bucket = TokenBucket(rate: 1000, now: 0)
    bucket.take(500, now: 0)
    #expect(bucket.wait(now: 0) == 0)
    bucket.take(500, now: 0)
    #expect(bucket.wait(now: 0) == Self.second / 2)
    #expect(bucket.wait(now: Self.second / 4) == Self.second / 4)
    #expect(bucket.wait(now: Self.second / 2) == 0)
  }

  @Test("over a long time the rate is met", arguments: [1, 7, 1000, 1_000_000_000, .max] as [Int64])
  func overALongTimeTheRateIsMet(rate: Int64) {
    var bucket = TokenBucket(rate: rate, now: 0)
    var (now, passed): (Int64, Int64) = (0, 0)
    while now < 60 * Self.second {
      let wait = bucket.wait(now: now)
      guard wait == 0 else {
        now += wait
        continue
      }
      bucket.take(16384, now: now)
      passed += 16384
      now += 1_000_000
    }
    #expect(Double(passed) <= Double(rate) * 60 + Double(rate) / 2 + 2 * 16384)
  }

  @Test("the burst is the amount of half a second of a slow limit, and of a quarter of a second of a fast one")
  func bursts() {
    #expect(TokenBucket(rate: 100 << 10, now: 0).burst == 50 << 10)
    #expect(TokenBucket(rate: 200 << 10, now: 0).burst == 64 << 10)
    #expect(TokenBucket(rate: 1 << 20, now: 0).burst == 256 << 10)
  }

  @Test("a rest does not make the burst larger")
  func aRestDoesNotGrowTheBurst() {
    var bucket = TokenBucket(rate: 1000, now: 0)
    #expect(bucket.wait(now: 1000 * Self.second) == 0)
    bucket.take(501, now: 1000 * Self.second)
    #expect(bucket.wait(now: 1000 * Self.second) > 0)
  }

  @Test("a clock that goes back brings no tokens")
  func aClockThatStandsStillIsNoGain() {
    var bucket = TokenBucket(rate: 1000, now: Self.second)
    bucket.take(1000, now: Self.second)
    #expect(bucket.wait(now: 0) == bucket.wait(now: Self.second))
  }
}
