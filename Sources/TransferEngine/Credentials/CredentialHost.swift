import ReelhaulCurl

/// A server that a credential may be sent to: `media.example.org`, `media.example.org:8443`, `[2001:db8::1]`, or with
/// `*.` in front every host below a domain, which itself is not meant. Without a port, the scheme's own.
package struct CredentialHost: Hashable, Sendable {
  private let name: String
  private let port: Int?
  private let isDomain: Bool

  /// `nil` for what is no such host.
  package init?(_ text: String) {
    isDomain = text.hasPrefix("*.")
    let rest = isDomain ? String(text.dropFirst(2)) : text
    // libcurl's own parser, so that what is compared is what will be connected to.
    guard !rest.utf8.contains(where: { "/?#@*".utf8.contains($0) }), let url = CurlURL("https://\(rest)/"),
      !url.host.isEmpty, !(isDomain && (url.host.hasPrefix("[") || !url.host.contains(".")))
    else { return nil }
    name = url.host
    let hasPort = rest.reversed().prefix { $0 != "]" }.contains(":")
    port = hasPort ? url.port : nil
  }

  func matches(_ url: CurlURL) -> Bool {
    let isThere = isDomain ? url.host.hasSuffix(".\(name)") : url.host == name
    return isThere && url.port == port ?? (url.scheme == "http" ? 80 : 443)
  }
}
