import ReelhaulSystem
import TaskCore

/// Decides when to compare this machine's clock with the store's, and when to tell that they differ. No lease depends on
/// the clock, but certificates, signatures, credentials that end and dates that servers name do.
struct ClockWatch: Sendable {
  enum Report: Hashable, Sendable {
    /// By how much this machine's clock is ahead; negative if it is behind.
    case wrong(Duration)
    case right
  }

  private static let tolerance = Duration.seconds(5)
  private static let interval = Duration.seconds(60)
  /// A slower answer says too little about the time.
  private static let longestAnswer = Duration.seconds(2)

  private(set) var offset = Duration.zero
  private var nextAt: BootInstant?
  private var isWrong = false

  /// Whether it is time to ask the store; the next time is a minute later.
  mutating func isDue(at now: BootInstant) -> Bool {
    if let nextAt, now < nextAt { return false }
    nextAt = now + Self.interval
    return true
  }

  /// `own`: this machine's time when the store answered `theirs`, `time` after it was asked. Returns what is to be told.
  mutating func measured(own: Timestamp, theirs: Timestamp, after time: Duration) -> Report? {
    guard time <= Self.longestAnswer else { return nil }
    offset = .microseconds(own.microseconds - theirs.microseconds - time.microseconds / 2)
    let wasWrong = isWrong
    isWrong = offset > Self.tolerance || offset < .zero - Self.tolerance
    guard isWrong != wasWrong else { return nil }
    return isWrong ? .wrong(offset) : .right
  }
}
