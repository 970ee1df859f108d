/// How often and when a failed task is tried again.
public struct RetryPolicy: Hashable, Sendable {
  public static let attempts = 1...100
  public static let intervalSeconds = 0...86_400

  /// How many attempts in a row may make no progress, the first included; 1…100.
  public var maxAttempts: Int
  /// Seconds before attempt 2, 3, …; the last interval repeats. If empty, exponential back-off with full jitter.
  public var intervals: [Int]

  public init(maxAttempts: Int = 8, intervals: [Int] = []) {
    self.maxAttempts = maxAttempts
    self.intervals = intervals
  }
}

/// What happens to a task after an attempt that did not succeed.
public enum RetryDecision: Hashable, Sendable {
  /// The task is tried again after the delay; this attempt counts.
  case retry(after: Duration)
  /// The task fails for good.
  case fail
  /// The task returns to its queue and waits for the delay; the attempt does not count.
  case wait(Duration)
}

extension RetryPolicy {
  /// The longest back-off without intervals, in seconds.
  public static let longestBackoff = 300
  /// The longest time for which a server can make a task wait, in seconds.
  public static let longestRetryAfter = 3600
  /// How long a task waits the first time that something else is at fault, such as a full disk, in seconds. It is a
  /// random time in this range, so that many tasks do not return at the same moment.
  public static let waitSeconds = 5.0...10.0
  /// How many runs in a row may be lost with their workers before their first checkpoint. Then the task fails, because
  /// it may be what kills the workers. The first checkpoint of those that move or delete files may come late. `end_runs`
  /// (07_settle.sql) names them, too.
  public static func mostLosses(of kind: TaskKind) -> Int {
    kind.isTransfer ? 20 : 5
  }
  /// How often the wait doubles.
  public static let waitDoublings = 3

  /// Decides what to do after `failure`. `attempt` is the number of attempts in a row without progress, this one
  /// included; 0 if this one made progress. `uncounted` is how often the task was handed back before without counting
  /// the attempt.
  ///
  /// The delay is the interval for this attempt, or a random time up to 1, 2, 4 … 300 s (full jitter). It is at least
  /// the failure's `retryAfter`, but not more than an hour of that.
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

  /// The shortest wait that the failure allows.
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
    // `Backoff` does not fit here: it counts in memory, and these attempts are counted in the database, across workers.
    let ceiling = min(1 << min(index, 30), Self.longestBackoff)
    return .seconds(Double.random(in: 0...Double(ceiling), using: &generator))
  }
}
