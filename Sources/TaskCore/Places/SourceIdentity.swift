/// Identifies one version of a source. All bytes of a task belong to exactly one version.
public struct SourceIdentity: Hashable, Sendable {
  /// The URL after redirects, redacted; only for people.
  public var finalURL: String
  /// The whole length in bytes; `nil` if the server does not announce it.
  public var size: Int64?
  /// The entity tag as sent, quotes included, `W/` removed.
  public var etag: String?
  public var etagIsWeak: Bool
  /// The `Last-Modified` value as sent.
  public var lastModified: String?
  /// The `Date` of the same response, as sent. It shows how old `lastModified` was at that time.
  public var date: String?
  /// The version of the object, if the server keeps several versions (`x-amz-version-id`).
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

/// How a source differs from the recorded one.
public enum IdentityMismatch: Error, Hashable, Sendable {
  case size(recorded: Int64, seen: Int64)
  case versionID
  case etag
  case lastModified

  /// Whether the length differs, so that the bytes do, too.
  public var isOfSize: Bool { if case .size = self { true } else { false } }
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
  /// How `seen` differs from this recorded identity; `nil` if it is the same version.
  ///
  /// The comparison is strict: every recorded validator must be present and equal. Sizes are compared if both are
  /// known, because a server may announce the size with a range but not with the whole file. URLs are not compared,
  /// because redirects may lead to different servers and to newly signed URLs.
  public func mismatch(with seen: SourceIdentity) -> IdentityMismatch? {
    if let size, let now = seen.size, size != now { return .size(recorded: size, seen: now) }
    if versionID != seen.versionID { return .versionID }
    if etag != seen.etag || etagIsWeak != seen.etagIsWeak { return .etag }
    if lastModified != seen.lastModified { return .lastModified }
    return nil
  }
}
