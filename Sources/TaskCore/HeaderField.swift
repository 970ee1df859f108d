/// A header field of the request that a task makes; never a secret one.
public struct HeaderField: Hashable, Sendable {
  public var name: String
  public var value: String

  public init(name: String, value: String) {
    self.name = name
    self.value = value
  }
}

extension HeaderField {
  private static let secretNames: Set<String> = [
    "authorization", "proxy-authorization", "cookie", "cookie2", "set-cookie", "x-api-key", "api-key", "x-auth-token",
    "x-amz-security-token", "x-vault-token", "private-token",
  ]

  private static let reservedNames: Set<String> = [
    "host", "range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since",
    "accept-encoding", "content-length", "transfer-encoding", "te", "trailer", "connection", "keep-alive",
    "proxy-connection", "upgrade", "expect",
  ]

  /// Whether it is a credential, which has no place in a task.
  public var isSecret: Bool { Self.secretNames.contains(name.lowercased()) }

  /// Whether the transfer must decide about it alone.
  public var isReserved: Bool { Self.reservedNames.contains(name.lowercased()) }

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
