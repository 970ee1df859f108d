/// What tells one version of a source from another. A task's bytes belong to exactly one.
public struct SourceIdentity: Hashable, Sendable {
  /// The URL after redirects, redacted: for people.
  public var finalURL: String
  /// The whole length in bytes, or `nil` where the server does not tell.
  public var size: Int64?
  /// The entity tag as sent, quotes included, `W/` removed.
  public var etag: String?
  public var etagIsWeak: Bool
  /// The `Last-Modified` value as sent.
  public var lastModified: String?
  /// The `Date` of the same response, as sent: it tells whether `lastModified` was settled by then.
  public var date: String?
  /// The version of the object, where the server keeps several (`x-amz-version-id`).
  public var versionID: String?

  public init(
    finalURL: String, size: Int64?, etag: String? = nil, etagIsWeak: Bool = false, lastModified: String? = nil,
    date: String? = nil, versionID: String? = nil
  ) {
    self.finalURL = finalURL
    self.size = size
    self.etag = etag
    self.etagIsWeak = etagIsWeak
    self.lastModified = lastModified
    self.date = date
    self.versionID = versionID
  }
}

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
