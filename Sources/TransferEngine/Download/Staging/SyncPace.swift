import ReelhaulSystem
import Synchronization

/// How often the runs of a storage root sync and record what they wrote. Few runs do it every two seconds. Very many, which
/// are slow then, do it less often, because a device makes only so many syncs a second, and their records wait for each
/// other, because each write to the store costs more than what it carries.
final class SyncPace: Sendable {
  /// Of all runs together, in a second.
  static let syncs = 48
  /// No run waits longer for this reason.
  static let longest = Duration.seconds(24)
  /// How long a record of very many runs may wait. A run that is stopped meanwhile waits for it, too.
  static let patience = Duration.milliseconds(150)

  private let runs = Atomic(0)

  func enter() { runs.add(1, ordering: .relaxed) }

  func leave() { runs.subtract(1, ordering: .relaxed) }

  /// The interval of one run, at least `least`.
  func interval(atLeast least: Duration) -> Duration {
    max(least, min(Self.longest, shared))
  }

  /// How long a record may wait for others, of a run that syncs at least every `least`.
  func patience(atLeast least: Duration) -> Duration { shared > least ? Self.patience : .zero }

  /// The interval of one run with which all together keep to the number of syncs.
  private var shared: Duration { .seconds(runs.load(ordering: .relaxed)) / Self.syncs }
}
