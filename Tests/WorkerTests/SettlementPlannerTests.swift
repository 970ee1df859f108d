import ReelhaulSystem
import TaskCore
import TaskStore
import Testing
import WorkerCore

@Suite struct SettlementPlannerTests {
  private func settle(
    _ outcome: RunOutcome, attempt: Int = 1, epoch: Int = 1, retry: RetryPolicy = RetryPolicy(),
    stop: StopReason? = nil,
    newBytes: Int64 = 0, size: Int64? = nil, generation: Int = 0, extraDelay: Duration = .zero, seed: UInt64 = 1
  ) -> Settlement.Outcome? {
    var planner = SettlementPlanner(seed: seed)
    return planner.settlement(
      of: .init(
        attempt: attempt, epoch: epoch, retry: retry, outcome: outcome, stop: stop, newBytes: newBytes, size: size,
        generation: generation, extraDelay: extraDelay))
  }

  private func failure(_ class: TaskFailure.Class, retryAfter: Int? = nil) -> TaskFailure {
    TaskFailure(code: .init(rawValue: "x"), message: "x", class: `class`, retryAfter: retryAfter)
  }

  @Test("a success is settled as success, even while stopping")
  func success() {
    #expect(
      settle(.succeeded(sha256: [1], bytes: 5), stop: .drain) == .succeeded(sha256: [1], bytes: 5),
      "done is done, even while stopping")
  }

  @Test("a stopped run is handed back", arguments: [StopReason.drain, .intent(.pause), .intent(.cancel)])
  func stoppedRunsAreHandedBack(stop: StopReason) {
    #expect(settle(.stopped, stop: stop) == .released(reason: nil, delay: .zero))
  }

  @Test("nothing is written for an abandoned run", arguments: [RunOutcome.stopped, .succeeded(sha256: nil, bytes: 0)])
  func nothingIsWrittenForAnAbandonedRun(outcome: RunOutcome) {
    #expect(settle(outcome, stop: .abandoned) == nil)
  }

  @Test("a permanent failure ends the task at once")
  func permanentFailuresFailAtOnce() {
    #expect(settle(.failed(failure(.fail)), newBytes: 1 << 30) == .failed(failure(.fail), retryIn: nil))
  }

  @Test("the last attempt fails the task")
  func attemptsRunOut() {
    let retry = RetryPolicy(maxAttempts: 3)
    for attempt in 1...2 {
      guard case .failed(_, .some) = settle(.failed(failure(.retry)), attempt: attempt, retry: retry) else {
        Issue.record("attempt \(attempt) of 3 is not the last")
        return
      }
    }
    #expect(settle(.failed(failure(.retry)), attempt: 3, retry: retry) == .failed(failure(.retry), retryIn: nil))
  }

  @Test("a task that waits for what is known later waits for its interval, too")
  func waitsLonger() {
    let again = RunOutcome.failed(failure(.retry))
    let retry = RetryPolicy(intervals: [2])
    #expect(
      settle(again, retry: retry, extraDelay: .seconds(5)) == .failed(failure(.retry), retryIn: .seconds(7)))
    #expect(
      settle(again, retry: retry, newBytes: 1 << 30, extraDelay: .seconds(5))
        == .progressed(failure(.retry), retryIn: .seconds(7)))
    #expect(settle(.failed(failure(.fail)), extraDelay: .seconds(5)) == .failed(failure(.fail), retryIn: nil))
  }

  private static let progress = SettlementPlanner.progress

  @Test(
    "a failure after progress starts the count again, up to 64 generations",
    arguments: [
      (progress, nil, 0, true), (progress - 1, nil, 0, false), (progress, 1 << 40, 63, true),
      (progress, 1 << 40, 64, false), (100, 10_000, 0, true), (99, 10_000, 0, false), (1, 50, 0, true),
      (0, 50, 0, false), (0, 0, 0, false),
    ] as [(Int64, Int64?, Int, Bool)])
  func progressEndsTheCount(newBytes: Int64, size: Int64?, generation: Int, counts: Bool) {
    let outcome = settle(
      .failed(failure(.retry)), attempt: 8, newBytes: newBytes, size: size, generation: generation)
    guard counts else { return #expect(outcome == .failed(failure(.retry), retryIn: nil)) }
    guard case .progressed(failure(.retry), let delay) = outcome else {
      Issue.record("\(String(describing: outcome))")
      return
    }
    #expect(delay <= .seconds(1), "as after a first attempt")
  }

  /// A source that behaves badly: every attempt brings the smallest progress or none, and sometimes another version.
  @Test("no task is tried for ever, whatever its source does", arguments: 1...20 as ClosedRange<UInt64>)
  func noTaskIsTriedForEver(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var planner = SettlementPlanner(seed: seed)
    let size: Int64 = 20 << 20
    var (attempt, done, generation, attempts) = (0, Int64(0), 0, 0)
    while done < size {
      attempts += 1
      if Int.random(in: 0..<10, using: &random) == 0 { (generation, done) = (generation + 1, 0) }
      let new = Bool.random(using: &random) ? min(size / 100 + 1, size - done) : 1
      done += new
      let outcome = planner.settlement(
        of: .init(
          attempt: attempt + 1, epoch: attempts, retry: RetryPolicy(), outcome: .failed(failure(.retry)),
          newBytes: new, size: size, generation: generation))
      switch outcome {
      case .failed(_, .some): attempt += 1
      case .progressed: attempt = 0
      default: return
      }
      guard attempts < 64 * 100 * 8 else {
        Issue.record("it never ends")
        return
      }
    }
  }

  @Test(
    "a wait counts no attempt and is longer each time", arguments: [(8, 5), (9, 10), (10, 20), (11, 40), (500, 40)])
  func waitsCountNoAttemptAndGrow(epoch: Int, least: Int) {
    guard case .released(.some, let delay) = settle(.failed(failure(.wait)), attempt: 8, epoch: epoch) else {
      Issue.record("counted")
      return
    }
    #expect(delay >= .seconds(least) && delay <= .seconds(2 * least))
  }

  @Test(
    "a stall, or more time than allowed, is a failed attempt",
    arguments: [(.stalled, .stalled), (.timedOut, .runTimedOut)] as [(StopReason, TaskFailure.Code)])
  func aStallIsAFailedAttempt(stop: StopReason, code: TaskFailure.Code) {
    guard case .failed(let failure, .some) = settle(.stopped, stop: stop) else {
      Issue.record("not counted")
      return
    }
    #expect(failure.code == code)
  }

  @Test("the back-off is random up to a limit of five minutes", arguments: 1...20) func fullJitterUpToFiveMinutes(
    attempt: Int
  ) {
    let longest = min(300, 1 << (attempt - 1))
    var delays: [Duration] = []
    for seed in 0..<50 as Range<UInt64> {
      guard
        case .failed(_, let delay?) = settle(
          .failed(failure(.retry)), attempt: attempt, retry: RetryPolicy(maxAttempts: 100), seed: seed)
      else {
        Issue.record("gave up")
        return
      }
      delays.append(delay)
    }
    #expect(delays.allSatisfy { $0 >= .zero && $0 <= .seconds(longest) })
    #expect(delays.contains { $0 > .seconds(longest) / 2 } && delays.contains { $0 < .seconds(longest) / 2 })
  }

  @Test("given intervals are used in order, and the last one repeats")
  func intervalsAreKeptAndTheLastRepeats() {
    let retry = RetryPolicy(maxAttempts: 10, intervals: [7, 60])
    let delays = (1...4).map { attempt -> Duration? in
      guard case .failed(_, let delay) = settle(.failed(failure(.retry)), attempt: attempt, retry: retry) else {
        return nil
      }
      return delay
    }
    #expect(delays == [.seconds(7), .seconds(60), .seconds(60), .seconds(60)])
  }

  @Test("Retry-After is respected up to an hour", arguments: [(-5, 0), (30, 30), (1_000_000, 3600)])
  func retryAfterIsHonouredAndClamped(asked: Int, least: Int) {
    guard case .failed(_, let delay?) = settle(.failed(failure(.retry, retryAfter: asked))) else {
      Issue.record("gave up")
      return
    }
    #expect(delay >= .seconds(least) && delay <= .seconds(least + 1))
  }
}
