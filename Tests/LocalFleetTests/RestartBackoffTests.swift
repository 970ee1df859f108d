import LocalFleet
import Testing

@Suite struct RestartBackoffTests {
  @Test("the wait before a restart doubles up to a limit")
  func growsToALimit() {
    var backoff = RestartBackoff()
    let delays = (0..<9).map { _ in backoff.delay(afterRunning: .seconds(1)) }
    #expect(delays == [0.5, 1, 2, 4, 8, 16, 30, 30, 30].map { Duration.milliseconds(Int64($0 * 1000)) })
  }

  @Test("the wait is short again after a healthy run")
  func forgivesAfterAHealthyRun() {
    var backoff = RestartBackoff()
    for _ in 0..<5 { _ = backoff.delay(afterRunning: .zero) }
    #expect(backoff.delay(afterRunning: .seconds(60)) == .milliseconds(500))
    #expect(backoff.delay(afterRunning: .zero) == .seconds(1))
  }

  @Test("a process that was asked to end, and did, is no crash")
  func ordersAreNoCrashes() {
    var backoff = RestartBackoff()
    for _ in 0..<5 { _ = backoff.delay(afterRunning: .zero) }
    #expect(backoff.delay(afterRunning: .seconds(1), wasAsked: true) == .milliseconds(500))
    #expect(backoff.delay(afterRunning: .seconds(1), wasAsked: true) == .milliseconds(500))
  }
}
