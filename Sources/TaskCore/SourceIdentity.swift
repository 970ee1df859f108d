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
