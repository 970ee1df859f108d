import ReelhaulKafka
import ReelhaulSystem

/// Whether the cluster is silent, by the notices of a reader: the cluster answers it about once a second.
struct KafkaSilence: Sendable {
  /// How long no answer may come.
  static let patience = Duration.seconds(5)

  private var answered: BootInstant
  /// Why no answer came for too long; nil if one came.
  private(set) var cause: KafkaError?

  init(since answered: BootInstant = .now) { self.answered = answered }

  /// Returns whether the silence begins or ends with this notice.
  mutating func note(_ notice: KafkaNotice, at now: BootInstant = .now) -> Bool {
    switch notice {
    case .answered:
      defer { self = KafkaSilence(since: now) }
      return cause != nil
    case .error(let error) where cause == nil && now - answered > Self.patience:
      cause = error
      return true
    default: return false
    }
  }
}
