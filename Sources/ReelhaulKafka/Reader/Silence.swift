import ReelhaulSystem

/// Whether the cluster is silent for a reader, which asks it about once a second. librdkafka notices only after a minute
/// that a broker hangs.
struct Silence {
  /// How long no answer may come.
  private static let patience = Duration.seconds(5)

  private var answered: BootInstant
  private(set) var isOn = false

  init(since answered: BootInstant = .now) { self.answered = answered }

  mutating func end(at now: BootInstant = .now) { self = Silence(since: now) }

  /// No answer came. Returns whether the silence begins with that.
  mutating func failed(at now: BootInstant = .now) -> Bool {
    guard !isOn, now - answered > Self.patience else { return false }
    isOn = true
    return true
  }
}
