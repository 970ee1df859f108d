import TaskCore
import TaskStore
import TransferEngine

/// Decides what becomes of a delivery after an attempt.
enum HookPolicy {
  enum Decision: Hashable {
    case finish
    case postpone(Duration, String)
    case giveUp(String)
  }

  /// After this time nobody tries any more.
  static let patience: Int64 = 3 * 86_400
  private static let first = 5.0
  private static let longest = 6.0 * 3600

  /// The waits are 5 s, 15 s, 45 s … up to 6 h, each shortened by up to a fifth: `jitter` is from 0 to 1.
  static func decide(
    _ outcome: HookOutcome, of delivery: HookDelivery, jitter: Double
  ) -> Decision {
    switch outcome {
    case .delivered: return .finish
    case .refused(let reason): return .giveUp(reason)
    case .failed(let reason, let retryAfter):
      guard delivery.age < .seconds(patience) else {
        return .giveUp("\(reason); given up after three days")
      }
      var seconds = first
      for _ in 1..<min(max(delivery.attempt, 1), 20) { seconds = min(seconds * 3, longest) }
      let wait = Duration.seconds(seconds * (1 - jitter / 5))
      return .postpone(min(max(wait, retryAfter ?? .zero), .seconds(longest)), reason)
    }
  }
}
