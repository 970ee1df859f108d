import ReelhaulSystem
import TaskCore
import TaskStore

/// Decides what the end of a run means for its task: done, another attempt at a time, or failed for good.
///
/// If an attempt makes progress and then fails, the count of attempts starts again, because a long file over a bad
/// connection must not run out of attempts. A failure that is not the task's fault does not count. Every attempt fails
/// for good, counts, or adds bytes to one of at most ``generations`` generations, so no task is tried for ever.
package struct SettlementPlanner: Sendable {
  /// What is known about a run at its end.
  package struct Run: Sendable {
    /// From 1.
    package var attempt: Int
    /// The number of the claim, from 1. The difference to `attempt` is the number of claims that did not count.
    package var epoch: Int
    package var retry: RetryPolicy
    package var outcome: RunOutcome
    package var stop: StopReason?
    /// Bytes that this run put on stable storage.
    package var newBytes: Int64
    /// The size of the whole file, if it is known.
    package var size: Int64?
    /// The generation of the checkpoint that the bytes belong to, from 0.
    package var generation: Int
    /// How much longer than its policy says the task waits for another attempt.
    package var extraDelay: Duration

    package init(
      attempt: Int, epoch: Int, retry: RetryPolicy, outcome: RunOutcome, stop: StopReason? = nil, newBytes: Int64 = 0,
      size: Int64? = nil, generation: Int = 0, extraDelay: Duration = .zero
    ) {
      self.attempt = attempt
      self.epoch = epoch
      self.retry = retry
      self.outcome = outcome
      self.stop = stop
      self.newBytes = newBytes
      self.size = size
      self.generation = generation
      self.extraDelay = extraDelay
    }

    /// The limit is high, because even a server that always fails may send a few bytes first.
    fileprivate var madeProgress: Bool {
      newBytes >= min(SettlementPlanner.progress, max(1, (size ?? .max) / 100))
        && generation < SettlementPlanner.generations
    }
  }

  /// Bytes that count as progress. For a small file, a hundredth of it counts.
  package static let progress: Int64 = 1 << 20
  /// The most generations of a task for which progress counts.
  package static let generations = 64

  private var random: SplitMix64

  package init(seed: UInt64) {
    random = SplitMix64(seed: seed)
  }

  /// Nil if nothing may be written.
  package mutating func settlement(of run: Run) -> Settlement.Outcome? {
    if run.stop == .abandoned { return nil }
    switch run.outcome {
    case .succeeded(let sha256, let bytes, let output):
      return .succeeded(sha256: sha256, bytes: bytes, output: output)
    case .failed(let failure):
      return settlement(of: failure, in: run)
    case .stopped where run.stop == .stalled:
      let failure = TaskFailure(code: .stalled, message: "the run made no progress for too long", class: .retry)
      return settlement(of: failure, in: run)
    case .stopped where run.stop == .timedOut:
      let failure = TaskFailure(
        code: .runTimedOut, message: "the attempt took longer than its kind allows", class: .retry)
      return settlement(of: failure, in: run)
    case .stopped:
      return .released(reason: nil, delay: .zero)
    }
  }

  private mutating func settlement(of failure: TaskFailure, in run: Run) -> Settlement.Outcome {
    let attempt = run.madeProgress ? 0 : run.attempt
    let uncounted = run.epoch - run.attempt
    return switch run.retry.decision(after: failure, attempt: attempt, uncounted: uncounted, using: &random) {
    case .retry(let delay) where attempt == 0: .progressed(failure, retryIn: delay + run.extraDelay)
    case .retry(let delay): .failed(failure, retryIn: delay + run.extraDelay)
    case .fail: .failed(failure, retryIn: nil)
    case .wait(let delay) where attempt == 0: .progressed(failure, retryIn: delay)
    case .wait(let delay): .released(reason: failure, delay: delay)
    }
  }
}
