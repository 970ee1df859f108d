/// An `http` or `https` URL, parsed strictly: a text that two programs could read differently is refused.
public struct WebURL: Hashable, Sendable {
  public enum Scheme: String, Sendable, CaseIterable {
    case https
    case http
  }

  public let scheme: Scheme
  /// In lower case, an IPv6 address without its brackets.
  public let host: String
  /// The port, if the URL contains one.
  public let port: UInt16?
  /// The path as it is sent: percent-encoded, at least `/`.
  public let path: String
  /// Without the question mark.
  public let query: String?

  init(scheme: Scheme, host: String, port: UInt16?, path: String, query: String?) {
    self.scheme = scheme
    self.host = host
    self.port = port
    self.path = path
    self.query = query
  }

  /// The URL as it is sent: non-ASCII characters percent-encoded, no fragment. It may contain secrets; ``description``
  /// does not.
  public var text: String { origin + path + (query.map { "?\($0)" } ?? "") }

  /// `https://host:port`
  public var origin: String {
    "\(scheme.rawValue)://\(host.contains(":") ? "[\(host)]" : host)\(port.map { ":\($0)" } ?? "")"
  }
}

extension WebURL: CustomStringConvertible {
  /// For logs: it does not show the values of the query.
  public var description: String { URLRedaction.redact(text) }
}
