import ReelhaulSystem
import Synchronization

/// How often the runs of a storage root sync and record what they wrote. Few runs do it every two seconds. Very many, which
/// are slow then, do it less often: a device makes only so many syncs a second, and each is a write to the store too.
final class SyncPace: Sendable {
  /// Of all runs together, in a second.
  static let syncs = 128
  /// No run waits longer for this reason.
  static let longest = Duration.seconds(8)

  private let runs = Atomic(0)

  func enter() { runs.add(1, ordering: .relaxed) }

  func leave() { runs.subtract(1, ordering: .relaxed) }

  /// The interval of one run, at least `least`.
  func interval(atLeast least: Duration) -> Duration {
    max(least, min(Self.longest, .seconds(runs.load(ordering: .relaxed)) / Self.syncs))
  }
}
