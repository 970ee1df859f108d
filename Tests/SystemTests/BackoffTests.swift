import ReelhaulSystem
import Testing

@Suite struct BackoffTests {
  @Test("waits double up to the limit, however many failures there are")
  func grows() {
    var backoff = Backoff(base: .milliseconds(50), limit: .seconds(5), spread: 0.1...1)
    var waits: [Duration] = []
    for _ in 0..<100 { waits.append(backoff.next(random: 1)) }
    #expect(waits[0] == .milliseconds(50))
    #expect(waits[2] == .milliseconds(200))
    #expect(waits[7...].allSatisfy { $0 == .seconds(5) })
    #expect(backoff.failures == 100)
    backoff.reset()
    #expect(backoff.next(random: 1) == .milliseconds(50))
  }

  @Test("waits are spread between the ends that were asked for", arguments: [0.1...1, 0.5...1, 1...1])
  func spreads(_ spread: ClosedRange<Double>) {
    var (least, greatest) = (
      Backoff(base: .seconds(1), limit: .seconds(1), spread: spread),
      Backoff(base: .seconds(1), limit: .seconds(1), spread: spread)
    )
    #expect(abs(least.next(random: 0).seconds - spread.lowerBound) < 1e-9)
    #expect(abs(greatest.next(random: 1).seconds - spread.upperBound) < 1e-9)
    var seeded = Backoff(base: .seconds(1), limit: .seconds(1), spread: spread, seed: 7)
    for _ in 0..<1000 {
      let wait = seeded.next().seconds
      #expect(wait >= spread.lowerBound - 1e-9 && wait <= spread.upperBound + 1e-9)
    }
  }

  @Test("the same seed gives the same waits")
  func repeats() {
    var (first, second) = (
      Backoff(base: .seconds(1), limit: .seconds(60), seed: 3), Backoff(base: .seconds(1), limit: .seconds(60), seed: 3)
    )
    for _ in 0..<20 { #expect(first.next() == second.next()) }
  }
}

@Suite struct BootInstantTests {
  @Test("an instant without end has never passed, and may be waited for")
  func saturates() {
    #expect(BootInstant.now + .nanoseconds(Int64.max) == .distantFuture)
    #expect(BootInstant.now + .seconds(Int64.max) == .distantFuture)
    #expect(!BootInstant.distantFuture.hasPassed)
    #expect(BootInstant.distantFuture.remaining > .seconds(1_000_000))
  }

  @Test("what has passed has nothing left")
  func passes() {
    let now = BootInstant.now
    #expect(now.hasPassed && now.remaining == .zero)
    #expect((now - .seconds(5)).duration(to: now) == .seconds(5))
    #expect((now + .seconds(60)).remaining > .seconds(50))
  }
}
