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
    if failure.class == .retry, run.newBytes >= Self.progress {
      let soon = Duration.seconds(Double.random(in: 0...2, using: &random))
      return .released(reason: failure, delay: max(soon, RetryPolicy.least(after: failure)))
    }
    return switch run.retry.decision(after: failure, attempt: run.attempt, using: &random) {
    case .retry(let delay): .failed(failure, retryIn: delay)
    case .fail: .failed(failure, retryIn: nil)
    case .wait(let delay): .released(reason: failure, delay: delay)
    }
  }
}
