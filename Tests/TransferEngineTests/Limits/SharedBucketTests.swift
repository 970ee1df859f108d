import Testing

@testable import TransferEngine

@Suite struct SharedBucketTests {
  static let second: Int64 = 1_000_000_000

  /// Lets `transfers` take from a bucket for `seconds` of virtual time. Each wants this many bytes per second, or as
  /// many as it can get if `nil`. Returns the bytes that each got.
  private func run(rate: Int64, seconds: Int64, _ transfers: [Int64?]) -> [Int64] {
    var bucket = SharedBucket(rate: rate, now: 0)
    var got = [Int64](repeating: 0, count: transfers.count)
    var isInLine = [Bool](repeating: false, count: transfers.count)
    for now in stride(from: 0, to: seconds * Self.second, by: 1_000_000) {
      for index in bucket.serve(now: now).served {
        got[index] += Int64(bucket.portion)
        isInLine[index] = false
      }
      for (index, wanted) in transfers.enumerated() {
        while !isInLine[index], wanted.map({ got[index] < $0 * now / Self.second }) ?? true {
          if bucket.take(index, now: now) { got[index] += Int64(bucket.portion) } else { isInLine[index] = true }
        }
      }
    }
    return got
  }

  @Test(
    "the rate holds for all transfers together and is shared equally",
    arguments: [100_000, 3_000_000, 200_000_000] as [Int64])
  func theRateHoldsForAllTogether(rate: Int64) {
    let bucket = SharedBucket(rate: rate, now: 0)
    let burst = TokenBucket(rate: rate, now: 0).burst
    let got = run(rate: rate, seconds: 20, [nil, nil, nil])
    let total = got.reduce(0, +)
    #expect(total <= rate * 20 + burst + Int64(bucket.portion))
    #expect(Double(total) >= Double(rate) * 20 * 0.98)
    // The transfer that comes first gets the first burst.
    #expect((got.max() ?? 0) - (got.min() ?? 0) <= burst + 2 * Int64(bucket.portion))
  }

  @Test("a transfer that needs little gets it, and the others share the rest")
  func aSmallDemandIsMet() {
    let got = run(rate: 10_000_000, seconds: 20, [500_000, nil, nil])
    #expect(got[0] >= 500_000 * 19)
    #expect(got[1] >= 4_500_000 * 20 && got[2] >= 4_500_000 * 20)
  }

  @Test("a transfer that has left is not served, and its share is used")
  func aTransferThatLeftIsNotServed() {
    var bucket = SharedBucket(rate: 1_000_000, now: 0)
    while bucket.take(1, now: 0) {}
    let isFirst = bucket.take(2, now: 0)
    #expect(!isFirst)
    bucket.leave(1, returning: bucket.portion, now: 0)
    let first = bucket.serve(now: 0).served
    #expect(first == [2])
    let (served, wait) = bucket.serve(now: 60 * Self.second)
    #expect(served.isEmpty)
    #expect(wait == nil)
  }

  @Test("waiting transfers take turns")
  func theLineMovesByTurns() {
    var bucket = SharedBucket(rate: 64 * 16384, now: 0)
    while bucket.take(0, now: 0) {}
    for transfer in 1...3 { _ = bucket.take(transfer, now: 0) }
    var order: [Int] = []
    var now: Int64 = 0
    while order.count < 12 {
      let (served, wait) = bucket.serve(now: now)
      for transfer in served {
        order.append(transfer)
        _ = bucket.take(transfer, now: now)
      }
      now += max(wait ?? 0, 1)
    }
    #expect(order == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3])
  }
}
