import ReelhaulSystem
import TaskCore
import Testing

private func failure(_ class: TaskFailure.Class, retryAfter: Int? = nil) -> TaskFailure {
  TaskFailure(code: .init(rawValue: "test"), message: "", class: `class`, retryAfter: retryAfter)
}

struct RetryPolicyTests {
  @Test("the back-off is random between zero and its limit")
  func backOffHasFullJitterUpToItsCap() {
    var generator = SplitMix64(seed: 1)
    let policy = RetryPolicy(maxAttempts: 100)
    for attempt in 1..<100 {
      let ceiling = Duration.seconds(min(1 << min(attempt - 1, 20), 300))
      var longest = Duration.zero
      for _ in 0..<200 {
        guard case .retry(let delay) = policy.decision(after: failure(.retry), attempt: attempt, using: &generator)
        else {
          Issue.record("no retry")
          return
        }
        #expect(delay >= .zero && delay <= ceiling)
        longest = max(longest, delay)
      }
      #expect(longest > ceiling * 0.9)
    }
  }

  @Test("given intervals are used in order, and the last one repeats")
  func intervalsAreUsedInTurnAndTheLastRepeats() {
    var generator = SplitMix64(seed: 2)
    let policy = RetryPolicy(maxAttempts: 6, intervals: [1, 10, 60])
    let decisions = (1...6).map { policy.decision(after: failure(.retry), attempt: $0, using: &generator) }
    #expect(decisions == [1, 10, 60, 60, 60].map { .retry(after: .seconds($0)) } + [.fail])
  }

  @Test(
    "Retry-After is a minimum, and counts for at most an hour",
    arguments: [(-5, 1), (0, 1), (30, 30), (7200, 3600), (Int.max, 3600)])
  func retryAfterIsAMinimumOfAtMostAnHour(asked: Int, expected: Int) {
    var generator = SplitMix64(seed: 3)
    let policy = RetryPolicy(maxAttempts: 2, intervals: [1])
    #expect(
      policy.decision(after: failure(.retry, retryAfter: asked), attempt: 1, using: &generator)
        == .retry(after: .seconds(expected)))
  }

  @Test("a permanent failure ends the task, and a wait does not count and grows")
  func failuresForGoodAndWaitsDoNotCount() {
    var generator = SplitMix64(seed: 4)
    let policy = RetryPolicy(maxAttempts: 1)
    #expect(policy.decision(after: failure(.fail), attempt: 1, using: &generator) == .fail)
    // A cause that lasts is asked about less and less often.
    for (uncounted, least) in [(-1, 5), (0, 5), (1, 10), (2, 20), (3, 40), (100, 40)] {
      let decision = policy.decision(after: failure(.wait), attempt: 50, uncounted: uncounted, using: &generator)
      guard case .wait(let delay) = decision else {
        Issue.record("does not wait")
        return
      }
      #expect(delay >= .seconds(least) && delay <= .seconds(2 * least), "\(uncounted): \(delay)")
    }
    #expect(
      policy.decision(after: failure(.wait, retryAfter: 60), attempt: 1, using: &generator) == .wait(.seconds(60)))
  }
}
