import CReelhaulCurl

/// An absolute URL, parsed and resolved by libcurl's own parser, so that the checked URL is the requested URL.
package struct CurlURL: Hashable, Sendable {
  /// The whole URL, normalised.
  package let text: String
  /// In lower case.
  package let scheme: String
  /// In lower case, IPv6 addresses in brackets.
  package let host: String
  /// The scheme's default port if the URL has none.
  package let port: Int
  /// Percent-encoded, with its leading slash.
  package let path: String
  /// Whether it carries a user name or a password.
  package let hasCredentials: Bool

  /// Nil if the text is not an absolute URL, or if libcurl does not know its scheme.
  ///
  /// - Parameter keepsPath: Whether `.` and `..` between the slashes of the path stay.
  package init?(_ text: String, keepsPath: Bool = false) {
    self.init(text, against: nil, keepsPath: keepsPath)
  }

  /// A reference, such as a `Location`, resolved against this URL.
  package func resolving(_ reference: String) -> CurlURL? {
    CurlURL(reference, against: self.text, keepsPath: false)
  }

  private init?(_ text: String, against base: String?, keepsPath: Bool) {
    guard !text.isEmpty, !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }), let url = curl_url() else {
      return nil
    }
    defer { curl_url_cleanup(url) }
    if let base, curl_url_set(url, CURLUPART_URL, base, 0) != CURLUE_OK { return nil }
    let flags = UInt32(keepsPath ? CURLU_URLENCODE | CURLU_PATH_AS_IS : CURLU_URLENCODE)
    guard curl_url_set(url, CURLUPART_URL, text, flags) == CURLUE_OK,
      let whole = Self.part(CURLUPART_URL, of: url), let scheme = Self.part(CURLUPART_SCHEME, of: url)
    else { return nil }
    self.text = whole
    self.scheme = scheme.lowercased()
    host = Self.part(CURLUPART_HOST, of: url)?.lowercased() ?? ""
    port = Self.part(CURLUPART_PORT, of: url, flags: UInt32(CURLU_DEFAULT_PORT)).flatMap { Int($0) } ?? 0
    path = Self.part(CURLUPART_PATH, of: url) ?? "/"
    hasCredentials = Self.part(CURLUPART_USER, of: url) != nil || Self.part(CURLUPART_PASSWORD, of: url) != nil
  }

  private static func part(_ part: CURLUPart, of url: OpaquePointer, flags: UInt32 = 0) -> String? {
    var text: UnsafeMutablePointer<CChar>?
    guard curl_url_get(url, part, &text, flags) == CURLUE_OK, let text else { return nil }
    // libcurl owns the string; curl_free frees it.
    defer { curl_free(text) }
    return String(cString: text)
  }

  /// Whether a request to `other` reaches the same server, so that headers for this URL may be sent there too.
  package func isSameOrigin(as other: CurlURL) -> Bool {
    scheme == other.scheme && host == other.host && port == other.port
  }

  /// `host:port`
  package var server: String { "\(host):\(port)" }
}
