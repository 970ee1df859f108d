import Testing
import WorkerCore

@Suite struct ProgressMeterTests {
  private func meter(total: Int64? = 1000) -> ProgressMeter {
    ProgressMeter(bytesDone: 0, bytesTotal: total, now: at(0))
  }

  @Test("the rate is in bytes per second")
  func theRateIsBytesPerSecond() {
    var meter = meter(total: 1_000_000)
    for step in 1...40 { meter.observe(bytesDone: Int64(step) * 2500, bytesTotal: nil, now: at(step * 250)) }
    #expect(meter.reading == .init(bytesDone: 100_000, bytesTotal: 1_000_000, rate: 10_000))
  }

  /// A run first looks at its source before it fetches. This time must not count as slowness.
  @Test("the first rates are the average since the first byte")
  func theFirstRatesAreTheAverageFromTheFirstByteOn() {
    var meter = meter(total: 1_000_000)
    for step in 1...4 { meter.observe(bytesDone: 0, bytesTotal: nil, now: at(step * 250)) }
    #expect(meter.reading.rate == 0)
    meter.observe(bytesDone: 2000, bytesTotal: nil, now: at(1250))
    #expect(meter.reading.rate == 8000)
    meter.observe(bytesDone: 5000, bytesTotal: nil, now: at(1500))
    #expect(meter.reading.rate == 10_000)
    for step in 7...60 { meter.observe(bytesDone: 5000, bytesTotal: nil, now: at(step * 250)) }
    #expect(meter.reading.rate < 200, "and it falls where nothing comes")
  }

  @Test("a new generation gives no negative rate")
  func aNewGenerationIsNoNegativeRate() {
    var meter = meter()
    meter.observe(bytesDone: 500, bytesTotal: nil, now: at(250))
    meter.observe(bytesDone: 0, bytesTotal: nil, now: at(500))
    #expect(meter.reading.rate >= 0)
    #expect(meter.lastProgress == at(500))
  }

  @Test("a wild report gives a rate that sums over a fleet can hold")
  func aWildRateIsBounded() {
    var meter = meter()
    meter.observe(bytesDone: .max, bytesTotal: .max, now: at(1))
    #expect(meter.reading.rate == 1_000_000_000_000_000)
    #expect(meter.reading.bytesDone == .max)
  }

  @Test("unchanged progress is not published")
  func unchangedProgressIsNotPublished() {
    var meter = meter()
    #expect(meter.takePublished() == nil && meter.takeRenewed(now: at(0)) == nil, "a run that just began is no news")
    meter.observe(bytesDone: 10, bytesTotal: nil, now: at(250))
    #expect(meter.takePublished() != nil)
    #expect(meter.takePublished() == nil)
  }

  @Test("renewals carry progress after more than 1 % or a second")
  func renewalsCarryOnePercentOrOneSecond() {
    var meter = meter()
    meter.observe(bytesDone: 1, bytesTotal: nil, now: at(100))
    #expect(meter.takeRenewed(now: at(100))?.bytesDone == 1, "the first one at once")
    meter.observe(bytesDone: 11, bytesTotal: nil, now: at(200))
    #expect(meter.takeRenewed(now: at(200)) == nil, "1 % is not more than 1 %")
    meter.observe(bytesDone: 12, bytesTotal: nil, now: at(300))
    #expect(meter.takeRenewed(now: at(300))?.bytesDone == 12)
    meter.observe(bytesDone: 13, bytesTotal: nil, now: at(400))
    #expect(meter.takeRenewed(now: at(1299)) == nil)
    #expect(meter.takeRenewed(now: at(1300))?.bytesDone == 13)
    #expect(meter.takeRenewed(now: at(9000)) == nil)
  }
}
