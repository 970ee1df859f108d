import ReelhaulCurl

/// A server that may receive a credential: `media.example.org`, `media.example.org:8443` or `[2001:db8::1]`. With `*.`
/// in front, every host below a domain, but not the domain itself. Without a port, the scheme's own port.
package struct CredentialHost: Hashable, Sendable {
  private let name: String
  private let port: Int?
  private let isDomain: Bool

  /// Nil if the text is not a host of this form.
  package init?(_ text: String) {
    isDomain = text.hasPrefix("*.")
    let rest = isDomain ? String(text.dropFirst(2)) : text
    // Uses libcurl's own parser, so that the compared host is the one that will be connected to.
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
