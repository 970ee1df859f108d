import ReelhaulCurl

/// Where requests for a bucket or an object go.
///
/// A key may contain `.` and `..` between slashes, so requests must be sent with `CURLOPT_PATH_AS_IS`.
package struct S3Endpoint: Hashable, Sendable {
  /// `https` or `http`.
  package let scheme: String
  /// In lower case, with the bucket in front unless the style is that of paths.
  package let host: String
  package let port: Int
  /// Percent-encoded, with its leading slash: of the endpoint, the bucket (in the style of paths) and the key.
  package let path: String

  /// - Parameter key: The object's key as text that is not encoded; nil for the bucket itself.
  package init(_ credential: S3Credential, bucket: String, key: String?) throws(InvalidS3Location) {
    guard Self.isBucket(bucket) else {
      throw InvalidS3Location(description: "\"\(bucket)\" is not the name of a bucket")
    }
    guard let url = Self.url(credential.endpointURL, allowsHTTP: credential.allowsHTTP) else {
      throw InvalidS3Location(description: "the endpoint of the credential is not one that it may be used for")
    }
    if let key {
      guard !key.isEmpty, key.utf8.count <= 1024 else {
        throw InvalidS3Location(description: "a key has 1 to 1024 bytes, not \(key.utf8.count)")
      }
    }
    scheme = url.scheme
    port = url.port
    var path = url.path.hasSuffix("/") ? String(url.path.dropLast()) : url.path
    // An address has no names below it.
    let isAddress = url.host.hasPrefix("[") || url.host.utf8.allSatisfy { ".0123456789".utf8.contains($0) }
    if isAddress || credential.usesPathStyle(for: bucket) {
      host = url.host
      path += "/\(S3Encoding.path(bucket))"
      if let key { path += "/\(S3Encoding.path(key))" }
    } else {
      host = "\(bucket).\(url.host)"
      path += "/\(S3Encoding.path(key ?? ""))"
    }
    self.path = path
  }

  /// The value of the field `Host`.
  package var authority: String { port == (scheme == "https" ? 443 : 80) ? host : "\(host):\(port)" }

  /// The URL of a request.
  package func url(_ query: S3Query = [:]) -> String {
    "\(scheme)://\(authority)\(path)\(query.isEmpty ? "" : "?\(query.text)")"
  }

  /// Nil if the text is not the URL of an endpoint, or needs TLS and has none.
  static func url(_ text: String, allowsHTTP: Bool) -> CurlURL? {
    guard !text.utf8.contains(where: { "?#%\\ ".utf8.contains($0) }), let url = CurlURL(text),
      url.scheme == "https" || allowsHTTP && url.scheme == "http", !url.host.isEmpty, !url.hasCredentials
    else { return nil }
    return url
  }

  /// S3's rules of today, and the names that older regions and other stores have.
  private static func isBucket(_ name: String) -> Bool {
    (1...255).contains(name.utf8.count) && name != "." && name != ".."
      && name.utf8.allSatisfy { byte in
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
          || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "-._".utf8.contains(byte)
      }
  }
}

/// Why a bucket, a key or an endpoint cannot be used. For people.
package struct InvalidS3Location: Error, Hashable, CustomStringConvertible {
  package let description: String
}
