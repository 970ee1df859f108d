import TaskCore
import TaskStore

/// Decides what the end of a run means for its task: done, once more and when, or failed for good.
///
/// An attempt that fails after it made progress ends the count of those before it: a file of many hours over a
/// bad line must not run out of attempts. What is not the task's fault is not counted either. Every attempt fails for
/// good, counts, or adds to the bytes of one of ``versions`` versions of the source: so there is an end.
package struct SettlementPlanner: Sendable {
  /// What is known about a run at its end.
  package struct Run: Sendable {
    /// From 1.
    package var attempt: Int
    /// The number of the claim, from 1: what is more than `attempt` did not count as one.
    package var epoch: Int
    package var retry: RetryPolicy
    package var outcome: RunOutcome
    package var stop: StopReason?
    /// Bytes that this run put on stable storage.
    package var newBytes: Int64
    /// Of the whole file, where it is known.
    package var size: Int64?
    /// The version of the source they are of, from 0.
    package var generation: Int

    package init(
      attempt: Int, epoch: Int, retry: RetryPolicy, outcome: RunOutcome, stop: StopReason? = nil, newBytes: Int64 = 0,
      size: Int64? = nil, generation: Int = 0
    ) {
      self.attempt = attempt
      self.epoch = epoch
      self.retry = retry
      self.outcome = outcome
      self.stop = stop
      self.newBytes = newBytes
      self.size = size
      self.generation = generation
    }

    /// Less is what any failing server sends before it fails.
    fileprivate var madeProgress: Bool {
      newBytes >= min(SettlementPlanner.progress, max(1, (size ?? .max) / 100))
        && generation < SettlementPlanner.versions
    }
  }

  /// Bytes that count as progress; of a small file, a hundredth does.
  package static let progress: Int64 = 1 << 20
  /// Of so many versions of a source.
  package static let versions = 64

  private var random: SplitMix64

  package init(seed: UInt64) {
    random = SplitMix64(seed: seed)
  }

  /// `nil` where nothing may be written.
  package mutating func settlement(of run: Run) -> Settlement.Outcome? {
    if run.stop == .abandoned { return nil }
    switch run.outcome {
    case .succeeded(let sha256, let bytes, let output):
      return .succeeded(sha256: sha256, bytes: bytes, output: output)
    case .failed(let failure):
      return settlement(of: failure, in: run)
    case .stopped where run.stop == .stalled:
      let failure = TaskFailure(code: .stalled, message: "The transfer stood still for too long.", class: .retry)
      return settlement(of: failure, in: run)
    case .stopped:
      return .released(reason: nil, delay: .zero)
    }
  }

  private mutating func settlement(of failure: TaskFailure, in run: Run) -> Settlement.Outcome {
    let attempt = run.madeProgress ? 0 : run.attempt
    let uncounted = run.epoch - run.attempt
    return switch run.retry.decision(after: failure, attempt: attempt, uncounted: uncounted, using: &random) {
    case .retry(let delay) where attempt == 0: .progressed(failure, retryIn: delay)
    case .retry(let delay): .failed(failure, retryIn: delay)
    case .fail: .failed(failure, retryIn: nil)
    case .wait(let delay): .released(reason: failure, delay: delay)
    }
  }
}
