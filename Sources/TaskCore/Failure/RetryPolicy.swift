/// When a failed attempt is made again.
public struct RetryPolicy: Hashable, Sendable {
  public static let attempts = 1...100
  public static let intervalSeconds = 0...86_400

  /// Attempts in a row that make no progress, the first included; 1…100.
  public var maxAttempts: Int
  /// Seconds before attempt 2, 3, …; the last one repeats. Empty: exponential back-off with full jitter.
  public var intervals: [Int]

  public init(maxAttempts: Int = 8, intervals: [Int] = []) {
    self.maxAttempts = maxAttempts
    self.intervals = intervals
  }
}

/// What becomes of a task after an attempt that did not succeed.
public enum RetryDecision: Hashable, Sendable {
  /// Another attempt after the delay; this one counts.
  case retry(after: Duration)
  /// The task fails for good.
  case fail
  /// Back to the queue for the delay; the attempt does not count.
  case wait(Duration)
}

extension RetryPolicy {
  /// The longest back-off without intervals, in seconds.
  public static let longestBackoff = 300
  /// What a server may make a task wait at most, in seconds.
  public static let longestRetryAfter = 3600
  /// How long a task waits at first that could not run through no fault of its own, in seconds; spread, so that the tasks of
  /// one full disk do not come back together.
  public static let waitSeconds = 5.0...10.0
  /// So often that doubles.
  public static let waitDoublings = 3

  /// What to do after `failure`, with `attempt` attempts made in vain, this one included; 0 where it made progress.
  /// `uncounted` times the task was handed back before without one of them being counted.
  ///
  /// The delay is the interval for that attempt, or a random time up to 1, 2, 4 … 300 s (full jitter); never less than
  /// the failure's `retryAfter`, of which up to an hour counts.
  public func decision(
    after failure: TaskFailure, attempt: Int, uncounted: Int = 0, using generator: inout some RandomNumberGenerator
  ) -> RetryDecision {
    let atLeast = Self.least(after: failure)
    switch failure.class {
    case .fail: return .fail
    case .wait: return .wait(max(atLeast, wait(after: uncounted, using: &generator)))
    case .retry where attempt >= maxAttempts: return .fail
    case .retry: return .retry(after: max(atLeast, delay(afterAttempt: attempt, using: &generator)))
    }
  }

  /// What the failure asks to wait at least.
  public static func least(after failure: TaskFailure) -> Duration {
    .seconds(min(max(failure.retryAfter ?? 0, 0), longestRetryAfter))
  }

  private func wait(after uncounted: Int, using generator: inout some RandomNumberGenerator) -> Duration {
    let growth = 1 << min(max(uncounted, 0), Self.waitDoublings)
    return .seconds(Double.random(in: Self.waitSeconds, using: &generator)) * growth
  }

  private func delay(afterAttempt attempt: Int, using generator: inout some RandomNumberGenerator) -> Duration {
    let index = max(attempt, 1) - 1
    guard intervals.isEmpty else { return .seconds(intervals[min(index, intervals.count - 1)]) }
    // Not `Backoff`, which counts in memory: these attempts are counted in the database, by whichever worker ran them.
    let ceiling = min(1 << min(index, 30), Self.longestBackoff)
    return .seconds(Double.random(in: 0...Double(ceiling), using: &generator))
  }
}
