/// Why a text is not a ``ResourceURL``. The descriptions never repeat the URL, because it may contain secrets.
public enum InvalidURL: Error, Hashable, Sendable {
  case empty
  case tooLong
  /// A control character or a space, at a byte's offset.
  case character(offset: Int)
  case noScheme
  case unsupportedScheme(String)
  case userinfo
  case host
  case internationalHost
  /// The host ends in a number but is not an IPv4 address.
  case ipv4
  case ipv6(InvalidIPv6)
  case port
  case percentEncoding(offset: Int)
  case encodedNUL(offset: Int)
  case storage(InvalidStorageURL)
  case s3(InvalidS3URL)
}

extension InvalidURL: CustomStringConvertible {
  public var description: String {
    switch self {
    case .empty: "the URL is empty"
    case .tooLong: "the URL is longer than \(TaskSpec.urlLimit) bytes"
    case .character(let offset): "a space or control character at byte \(offset) must be percent-encoded"
    case .noScheme: "not an absolute URL"
    case .unsupportedScheme(let scheme): "the scheme \"\(scheme)\" is not supported"
    case .userinfo: "user name and password do not belong in a URL: name a credential instead"
    case .host: "the host is missing or not valid"
    case .internationalHost: "write the host in its ASCII form (xn--…)"
    case .ipv4:
      "a host that ends in a number must be an IPv4 address, such as 192.0.2.7"
    case .ipv6(let error): error.description
    case .port: "the port must be a number from 1 to 65535"
    case .percentEncoding(let offset): "\"%\" at byte \(offset) must be followed by two hexadecimal digits"
    case .encodedNUL(let offset): "the encoded NUL at byte \(offset) is not allowed"
    case .storage(let error): error.description
    case .s3(let error): error.description
    }
  }
}
