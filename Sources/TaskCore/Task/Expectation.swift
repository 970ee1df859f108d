/// What the received bytes must be equal to.
public struct Expectation: Hashable, Sendable {
  /// 32 bytes, or `nil`.
  public var sha256: [UInt8]?
  /// 16 bytes, or `nil`.
  public var md5: [UInt8]?
  public var bytes: Int64?

  public init(sha256: [UInt8]? = nil, md5: [UInt8]? = nil, bytes: Int64? = nil) {
    self.sha256 = sha256
    self.md5 = md5
    self.bytes = bytes
  }

  /// Whether only the file's bytes can tell if it is the expected one.
  package var hasDigest: Bool { sha256 != nil || md5 != nil }
}

/// What to do if the destination already exists.
public enum IfExists: String, Sendable, CaseIterable {
  /// The task fails with `destination_exists`.
  case fail
  /// The task changes nothing. It succeeds, unless the file differs from what is expected.
  case skip
  /// The finished file replaces the old one, atomically.
  case replace
}
