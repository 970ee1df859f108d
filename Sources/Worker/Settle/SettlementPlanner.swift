import TaskCore
import TaskStore

/// Decides what the end of a run means for its task: done, once more and when, or failed for good.
///
/// An attempt that brought the task forward is not counted against it, however it ended: a file of many hours over a
/// bad line must not run out of attempts. What is not the task's fault is not counted either.
package struct SettlementPlanner: Sendable {
  /// What is known about a run at its end.
  package struct Run: Sendable {
    /// From 1.
    package var attempt: Int
    package var retry: RetryPolicy
    package var outcome: RunOutcome
    package var stop: StopReason?
    /// Bytes that this run put on stable storage.
    package var newBytes: Int64

    package init(attempt: Int, retry: RetryPolicy, outcome: RunOutcome, stop: StopReason? = nil, newBytes: Int64 = 0) {
      self.attempt = attempt
      self.retry = retry
      self.outcome = outcome
      self.stop = stop
      self.newBytes = newBytes
    }
  }

  /// What counts as having come forward: less is what any failing server sends before it fails.
  package static let progress: Int64 = 1 << 20
  /// The longest wait that a server's Retry-After is believed.
  package static let longestRetryAfter = 3600
  private static let longestDelay = Duration.seconds(300)

  private var random: SplitMix64

  package init(seed: UInt64) {
    random = SplitMix64(seed: seed)
  }

  /// `nil` where nothing may be written.
  package mutating func settlement(of run: Run) -> Settlement.Outcome? {
    if run.stop == .abandoned { return nil }
    switch run.outcome {
    case .succeeded(let sha256, let bytes):
      return .succeeded(sha256: sha256, bytes: bytes)
    case .failed(let failure):
      return settlement(of: failure, in: run)
    case .stopped where run.stop == .stalled:
      let failure = TaskFailure(code: "stalled", message: "The transfer stood still for too long.", class: .retry)
      return settlement(of: failure, in: run)
    case .stopped:
      return .released(reason: nil, delay: .zero)
    }
  }

  private mutating func settlement(of failure: TaskFailure, in run: Run) -> Settlement.Outcome {
    switch failure.class {
    case .fail:
      return .failed(failure, retryIn: nil)
    case .wait:
      return .released(reason: failure, delay: delay(for: failure, between: .seconds(5), and: .seconds(10)))
    case .retry where run.newBytes >= Self.progress:
      return .released(reason: failure, delay: delay(for: failure, between: .zero, and: .seconds(2)))
    case .retry where run.attempt >= run.retry.maxAttempts:
      return .failed(failure, retryIn: nil)
    case .retry:
      let window = Self.window(after: run.attempt, run.retry)
      return .failed(failure, retryIn: delay(for: failure, between: window.lowerBound, and: window.upperBound))
    }
  }

  /// Between which waits the next one lies: full jitter, or exactly the interval that the task asks for.
  private static func window(after attempt: Int, _ policy: RetryPolicy) -> ClosedRange<Duration> {
    if let last = policy.intervals.last {
      let seconds = attempt <= policy.intervals.count ? policy.intervals[max(attempt, 1) - 1] : last
      return .seconds(seconds) ... .seconds(seconds)
    }
    return .zero...min(longestDelay, .seconds(1 << min(max(attempt, 1) - 1, 20)))
  }

  private mutating func delay(for failure: TaskFailure, between low: Duration, and high: Duration) -> Duration {
    let jittered = low + (high - low) * Double.random(in: 0...1, using: &random)
    guard let asked = failure.retryAfter else { return jittered }
    return max(jittered, .seconds(min(max(asked, 0), Self.longestRetryAfter)))
  }
}
