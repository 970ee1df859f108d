import ReelhaulSystem

/// How many workers there are, as the last sweep of this one has found. What any of them may do, each does the more rarely,
/// the more of them there are.
package final class FleetSize: Sendable {
  private let count = Lock(1)

  package init() {}

  package var workers: Int { count.withLock { $0 } }

  package func found(_ workers: Int) {
    count.withLock { $0 = max(1, workers) }
  }

  /// The mean pause with which all workers together do something as often as `few` of them with `pause`; not more than
  /// `longest`, because the others may end at once.
  package func pause(_ pause: Duration, of few: Int, atMost longest: Duration) -> Duration {
    min(pause * Double(max(few, workers)) / Double(few), max(pause, longest))
  }

  /// How many each may do of what all together do as many of as `few` of them with `number` each; at least one.
  package func share(_ number: Int, of few: Int) -> Int {
    max(1, number * few / max(few, workers))
  }
}
