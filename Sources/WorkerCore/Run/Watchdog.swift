import ReelhaulSystem

/// Decides what to do about a run that makes no progress. Only the worker itself can decide this: the store sees only
/// that the worker is alive.
package struct Watchdog: Sendable {
  package enum Verdict: Hashable, Sendable {
    case fine
    /// The run must stop.
    case stop
    /// The run should have stopped and did not: detach it and hand its task back. Its later writes are refused.
    case detach
  }

  /// How long a run may show no progress.
  package var patience: Duration
  /// How long a run may take to stop.
  package var grace: Duration

  package init(patience: Duration = .seconds(600), grace: Duration = .seconds(60)) {
    self.patience = patience
    self.grace = grace
  }

  package func verdict(lastProgress: BootInstant, toldToStop: BootInstant?, now: BootInstant) -> Verdict {
    if let toldToStop { return now >= toldToStop + grace ? .detach : .fine }
    return now >= lastProgress + patience ? .stop : .fine
  }
}
