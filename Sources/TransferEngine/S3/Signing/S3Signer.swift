import ReelhaulCodec
import ReelhaulDigest
import ReelhaulSystem
import TaskCore

/// Signs requests to S3 with Signature Version 4, in header fields.
///
/// A path is encoded once, and neither `.`, `..` nor `//` in it are normalised: that is S3's own rule.
package final class S3Signer: Sendable {
  /// The payload hash of a request without a body.
  package static let emptyPayload = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  /// The payload hash of a body that is not signed, which only TLS protects then.
  package static let unsignedPayload = "UNSIGNED-PAYLOAD"

  /// Fields that a client or a proxy may change on the way, and `host`, which the request has by itself.
  private static let unsigned: Set<String> = [
    "authorization", "connection", "expect", "host", "transfer-encoding", "user-agent",
  ]

  private struct Scope: Hashable {
    var secret: String
    var day: Substring
    var region: String
  }

  /// Derived keys: four digests less for each request.
  private let keys = Lock<[Scope: [UInt8]]>([:])

  package init() {}

  /// The fields to add to the request: `x-amz-date`, `x-amz-content-sha256`, `x-amz-security-token` if the credential has
  /// one, and `Authorization`.
  ///
  /// - Parameters:
  ///   - payloadHash: The SHA-256 of the body in hexadecimal digits, or ``unsignedPayload``.
  ///   - seconds: The time since 1970. Servers refuse times that differ from theirs by more than 15 minutes.
  package func fields(
    for request: S3Request, payloadHash: String, credential: S3Credential, at seconds: Int64
  ) -> [HeaderField] {
    let time = Self.time(seconds)
    var added = [
      HeaderField(name: "x-amz-date", value: time), HeaderField(name: "x-amz-content-sha256", value: payloadHash),
    ]
    if let token = credential.sessionToken { added.append(HeaderField(name: "x-amz-security-token", value: token)) }
    let (canonical, names) = Self.canonical(request, adding: added, payloadHash: payloadHash)
    let scope = "\(time.prefix(8))/\(credential.region)/s3/aws4_request"
    let hash = Hex.encode(digest(.sha256, of: canonical.utf8))
    let text = "AWS4-HMAC-SHA256\n\(time)\n\(scope)\n\(hash)"
    let signature = Hex.encode(HMAC.sha256(key: key(of: credential, day: time.prefix(8)), Array(text.utf8)))
    let authorization =
      "AWS4-HMAC-SHA256 Credential=\(credential.accessKeyID)/\(scope), SignedHeaders=\(names), Signature=\(signature)"
    return added + [HeaderField(name: "Authorization", value: authorization)]
  }

  private static func canonical(
    _ request: S3Request, adding added: [HeaderField], payloadHash: String
  ) -> (text: String, names: String) {
    var values: [String: [String]] = ["host": [trimmed(request.host)]]
    let replaced = Set(added.map(\.name)).union(unsigned)
    for field in request.headers where !replaced.contains(field.name.lowercased()) {
      values[field.name.lowercased(), default: []].append(trimmed(field.value))
    }
    for field in added { values[field.name] = [trimmed(field.value)] }
    let names = values.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    let headers = names.map { "\($0):\(values[$0, default: []].joined(separator: ","))\n" }.joined()
    let list = names.joined(separator: ";")
    return ("\(request.method)\n\(request.path)\n\(request.query.text)\n\(headers)\n\(list)\n\(payloadHash)", list)
  }

  /// Without white space at the ends, and with one space in the place of several within.
  private static func trimmed(_ value: String) -> String {
    value.utf8.contains(where: { $0 == 0x20 || $0 == 0x09 })
      ? value.split(whereSeparator: { $0 == " " || $0 == "\t" }).joined(separator: " ") : value
  }

  private func key(of credential: S3Credential, day: Substring) -> [UInt8] {
    let scope = Scope(secret: credential.secretAccessKey, day: day, region: credential.region)
    return keys.withLock { keys in
      if let key = keys[scope] { return key }
      let key = ["\(day)", scope.region, "s3", "aws4_request"].reduce(Array("AWS4\(scope.secret)".utf8)) {
        HMAC.sha256(key: $0, Array($1.utf8))
      }
      // Only the credentials of today's tasks are in use.
      if keys.count >= 64 { keys = [:] }
      keys[scope] = key
      return key
    }
  }

  /// `20130524T000000Z`
  private static func time(_ seconds: Int64) -> String {
    let text = Timestamp(microseconds: seconds * 1_000_000).description
    return String(text.prefix { $0 != "." }.filter { $0 != "-" && $0 != ":" }) + "Z"
  }
}
