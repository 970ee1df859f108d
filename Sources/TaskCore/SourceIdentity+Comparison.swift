/// How a source turned out to be another one than was recorded.
public enum IdentityMismatch: Error, Hashable, Sendable {
  case size(recorded: Int64, seen: Int64)
  case versionID
  case etag
  case lastModified
}

extension IdentityMismatch: CustomStringConvertible {
  public var description: String {
    switch self {
    case .size(let recorded, let seen): "the source's size changed from \(recorded) to \(seen)"
    case .versionID: "the source's version id changed"
    case .etag: "the source's entity tag changed"
    case .lastModified: "the source's modification time changed"
    }
  }
}

extension SourceIdentity {
  /// A modification time this old when it was served will not be given to other bytes as well (RFC 9110, 8.8.2.2).
  private static let settledAfterMicroseconds: Int64 = 60_000_000

  /// Whether two equal identities mean equal bytes, so that another worker may go on with the bytes that are there.
  ///
  /// A version id and a strong entity tag are; a weak tag is not. A modification time is where the server's own clock
  /// was a minute ahead of it: within one second a file may change and keep its time.
  public var isStrong: Bool {
    if versionID != nil { return true }
    if etag != nil, !etagIsWeak { return true }
    guard let modified = lastModified.flatMap(HTTPDate.parse), let date = date.flatMap(HTTPDate.parse) else {
      return false
    }
    return date.microseconds - modified.microseconds >= Self.settledAfterMicroseconds
  }

  /// In what `seen` differs from this recorded identity, or `nil` where it is the same source.
  ///
  /// Strict: whatever validator was recorded must be there again and be equal. Sizes are compared where both are told: a
  /// server may tell it with a range and not with the whole. URLs are not, since redirectors sign and spread them.
  public func mismatch(with seen: SourceIdentity) -> IdentityMismatch? {
    if let size, let now = seen.size, size != now { return .size(recorded: size, seen: now) }
    if versionID != seen.versionID { return .versionID }
    if etag != seen.etag || etagIsWeak != seen.etagIsWeak { return .etag }
    if lastModified != seen.lastModified { return .lastModified }
    return nil
  }
}
