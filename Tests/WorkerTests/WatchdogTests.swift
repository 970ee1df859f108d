import Testing
import WorkerCore

@Suite struct WatchdogTests {
  private let watchdog = Watchdog(patience: .seconds(600), grace: .seconds(60))

  @Test(
    "the watchdog stops a run without progress, and later detaches it",
    arguments: [
      (0, nil, 599_999, Watchdog.Verdict.fine),
      (0, nil, 600_000, .stop),
      (0, 600_000, 659_999, .fine),
      (0, 600_000, 660_000, .detach),
      (500_000, nil, 700_000, .fine),
      (500_000, 500_000, 560_000, .detach),
    ]) func verdicts(lastProgress: Int, toldToStop: Int?, now: Int, expected: Watchdog.Verdict)
  {
    #expect(
      watchdog.verdict(lastProgress: at(lastProgress), toldToStop: toldToStop.map(at), now: at(now)) == expected)
  }
}
