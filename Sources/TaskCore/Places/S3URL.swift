/// An object of a store that speaks the S3 protocol: `s3://BUCKET/KEY`, optionally one version of it:
/// `s3://BUCKET/KEY?versionId=ID`.
///
/// Where the store is and who may use it are settings of the named credential, not of the URL.
public struct S3URL: Sendable {
  /// 3 to 255 letters, digits, `.`, `-` and `_`.
  public let bucket: String
  /// 1 to 1024 bytes, decoded. Its bytes are the object's name: Unicode is not normalised.
  public let key: String
  /// Nil for the current version.
  public let versionID: String?

  /// The most bytes in a key, and in the id of a version.
  public static let keyLimit = 1024

  public init(_ text: String) throws(InvalidURL) {
    guard Self.hasScheme(text.utf8) else { throw .noScheme }
    let text = Array(text.utf8)
    try PercentEncoding.check(text)
    guard !text.contains(UInt8(ascii: "#")) else { throw .s3(.fragment) }
    let place = text.dropFirst(Self.scheme.utf8.count)
    let name = place.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
    guard (3...255).contains(name.count), name.allSatisfy(\.isOfName) else { throw .s3(.bucket) }
    bucket = String(decoding: name, as: UTF8.self)
    let target = place[name.endIndex...]
    let path = target.prefix { $0 != UInt8(ascii: "?") }
    guard path.count > 1 else { throw .s3(.noKey) }
    guard let key = StorageURL.unescaped(path.dropFirst()) else { throw .s3(.notUTF8) }
    guard key.utf8.count <= Self.keyLimit else { throw .s3(.keyTooLong) }
    self.key = key
    guard path.endIndex < target.endIndex else {
      versionID = nil
      return
    }
    let query = target[path.endIndex...].dropFirst()
    guard query.starts(with: Self.versionName.utf8), !query.contains(UInt8(ascii: "&")) else { throw .s3(.query) }
    guard let version = StorageURL.unescaped(query.dropFirst(Self.versionName.utf8.count)) else { throw .s3(.notUTF8) }
    guard (1...Self.keyLimit).contains(version.utf8.count) else { throw .s3(.version) }
    versionID = version
    guard !isFolder else { throw .s3(.folderVersion) }
  }

  /// Whether the key ends with `/`: it then stands for all keys that begin with it.
  public var isFolder: Bool { key.utf8.last == UInt8(ascii: "/") }

  private static let scheme = "s3://"
  private static let versionName = "versionId="

  static func hasScheme(_ text: some Sequence<UInt8>) -> Bool { ResourceURL.begins(text, with: scheme) }
}

extension S3URL: Hashable {
  /// Compares bytes, because a store keeps two spellings of one name as two objects, and strings compare them as equal.
  public static func == (a: S3URL, b: S3URL) -> Bool { Array(a.description.utf8) == Array(b.description.utf8) }

  public func hash(into hasher: inout Hasher) { hasher.combine(Array(description.utf8)) }
}

extension S3URL: CustomStringConvertible {
  /// Equal for equal URLs, and parsing it gives the same URL. It contains no secret.
  public var description: String {
    let version = versionID.map { "?\(Self.versionName)\(Self.encode($0))" } ?? ""
    return "\(Self.scheme)\(bucket)/\(Self.encode(key))\(version)"
  }

  private static func encode(_ text: String) -> String {
    PercentEncoding.encode(text.utf8) { $0 <= 0x20 || $0 == 0x7F || "%?#&".utf8.contains($0) }
  }
}

/// Why a text that begins with `s3://` is not an ``S3URL``.
public enum InvalidS3URL: Error, Hashable, Sendable, CaseIterable {
  case bucket
  case noKey
  case keyTooLong
  case notUTF8
  case fragment
  case query
  case version
  case folderVersion
}

extension InvalidS3URL: CustomStringConvertible {
  public var description: String {
    switch self {
    case .bucket: "the bucket's name must be 3 to 255 letters, digits, \".\", \"-\" or \"_\""
    case .noKey: "the key is missing: write s3://BUCKET/KEY"
    case .keyTooLong: "the key is longer than \(S3URL.keyLimit) bytes"
    case .notUTF8: "an escape in it is not %XX of valid UTF-8"
    case .fragment: "a \"#\" in a key must be written as %23"
    case .query: "only ?versionId=ID may follow the key; a \"?\" in a key must be written as %3F"
    case .version: "the version's id must be 1 to \(S3URL.keyLimit) bytes"
    case .folderVersion: "a key that ends with \"/\" stands for all keys below it, which have no common version"
    }
  }
}
