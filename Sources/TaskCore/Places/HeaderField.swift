/// A header field of the request that a task makes. A task must not contain a secret one.
public struct HeaderField: Hashable, Sendable {
  public var name: String
  public var value: String

  public init(name: String, value: String) {
    self.name = name
    self.value = value
  }
}

extension HeaderField {
  /// A field is treated as a secret if its name contains one of these, as `Proxy-Authorization` or `XAuthToken` does.
  private static let secretParts = [
    "authorization", "authentication", "cookie", "token", "apikey", "secret", "password", "passwd", "signature",
    "credential",
  ]
  /// Or if it has one of these as a word, as `X-Api-Key` does.
  private static let secretWords: Set<Substring> = ["auth", "key", "jwt"]
  /// They only tell one request from another, or name a key that a store keeps.
  private static let publicNames: Set<String> = [
    "idempotency-key", "x-amz-server-side-encryption-aws-kms-key-id",
    "x-amz-server-side-encryption-bucket-key-enabled",
  ]

  private static let reservedNames: Set<String> = [
    "host", "range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since",
    "accept-encoding", "content-length", "transfer-encoding", "te", "trailer", "connection", "keep-alive",
    "proxy-connection", "upgrade", "expect",
  ]

  /// Whether the name looks like that of a secret. A secret must not be in a task.
  public var isSecret: Bool {
    let name = name.lowercased()
    guard !Self.publicNames.contains(name) else { return false }
    return Self.secretParts.contains { name.contains($0) }
      || name.split { "-_.".contains($0) }.contains { Self.secretWords.contains($0) }
  }

  /// Whether only the transfer itself may set this field.
  public var isReserved: Bool { Self.reservedNames.contains(name.lowercased()) }

  /// Whether name and value can be sent: they are short enough, and contain no byte that would end them too early.
  public var isSendable: Bool { isToken && hasSendableValue }

  var hasSendableValue: Bool {
    value.utf8.count <= 8192 && value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
  }

  /// Whether the name is a token of HTTP (RFC 9110, 5.6.2).
  var isToken: Bool {
    !name.isEmpty && name.utf8.count <= 256
      && name.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"):
          true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
      }
  }
}
