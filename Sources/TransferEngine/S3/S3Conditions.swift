import ReelhaulSystem

/// Whether a bucket looks at the conditions of requests that make an object.
enum S3Conditions {
  /// It refused what only had to be refused for the condition that is sent with every creation.
  case proven
  /// It refused a condition that no object meets.
  case honoured
  /// As ``honoured``, and who has asked for more may not look at the answer.
  case unproven
  case ignored
  /// It refuses to be asked.
  case untold
  /// It refuses every request with a condition: none is sent to it.
  case refused

  /// Whether the bucket looks at conditions, as far as it is known.
  var areLookedAt: Bool { [.proven, .honoured, .unproven].contains(self) }

  /// What this process has found out.
  static let known = Lock<[String: S3Conditions]>([:])
  private static let most = 1000

  /// Nil if it has not been asked.
  static func of(_ bucket: String) -> S3Conditions? { known.withLock { $0[bucket] } }

  /// What an answer has told that turned out to be false is not known.
  static func forget(_ conditions: S3Conditions, of bucket: String) {
    known.withLock { if $0[bucket] == conditions { $0[bucket] = nil } }
  }

  static func learn(_ conditions: S3Conditions, of bucket: String) {
    known.withLock { known in
      if known.count >= most { known.removeAll() }
      known[bucket] = conditions
    }
  }
}
