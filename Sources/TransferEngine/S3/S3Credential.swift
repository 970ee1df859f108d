import TaskCore

/// The keys with which a worker signs its requests to S3, and the place they are for. Its description shows none of them.
package struct S3Credential: Hashable, Sendable {
  package static let standardRegion = "us-east-1"

  package var accessKeyID: String
  package var secretAccessKey: String
  package var sessionToken: String?
  package var region: String
  /// An http or https URL without a query; nil for AWS.
  package var endpoint: String?
  /// Whether the bucket is in the path instead of the host name. See ``usesPathStyle(for:)``.
  package var pathStyle: Bool
  /// Whether the endpoint may be without TLS.
  package var allowsHTTP: Bool
  /// When the store stops to accept it, if that is known.
  package var expiresAt: Timestamp?

  /// Whether others will take its place by themselves.
  var isTemporary: Bool { sessionToken != nil || expiresAt != nil }

  /// - Parameter pathStyle: If nil, true for an endpoint and false for AWS.
  package init(
    accessKeyID: String, secretAccessKey: String, sessionToken: String? = nil, region: String = standardRegion,
    endpoint: String? = nil, pathStyle: Bool? = nil, allowsHTTP: Bool = false, expiresAt: Timestamp? = nil
  ) {
    self.accessKeyID = accessKeyID
    self.secretAccessKey = secretAccessKey
    self.sessionToken = sessionToken
    self.region = region
    self.endpoint = endpoint
    self.pathStyle = pathStyle ?? (endpoint != nil)
    self.allowsHTTP = allowsHTTP
    self.expiresAt = expiresAt
  }

  /// The endpoint's URL: its own, or that of AWS in the region.
  package var endpointURL: String {
    endpoint ?? "https://s3.\(region).amazonaws.com\(region.hasPrefix("cn-") ? ".cn" : "")"
  }

  /// A bucket whose name is no single label of a host name, as certificates and DNS need it, is always in the path.
  package func usesPathStyle(for bucket: String) -> Bool {
    pathStyle
      || !bucket.utf8.allSatisfy {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
          || $0 == UInt8(ascii: "-")
      } || !(3...63).contains(bucket.utf8.count)
  }

  /// The text without the secret key and the session token. A value of less than four characters stays: it is in many
  /// words, and protects nothing.
  func hidden(in text: String) -> String {
    [secretAccessKey, sessionToken ?? ""].filter { $0.count >= 4 }.reduce(text) { $0.replacing($1, with: "•••") }
  }

  /// Whether the text can be a region: it becomes part of a host name.
  package static func isRegion(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
          || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte == UInt8(ascii: "-")
      }
  }
}

extension S3Credential: CustomStringConvertible, CustomReflectable {
  package var description: String { "a credential for S3" }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
