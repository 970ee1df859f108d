import ReelhaulCurl
import TaskCore

/// The header fields or keys with which a worker authenticates itself, and the hosts that may receive them. Its
/// description shows none of them.
package struct Credential: Hashable, Sendable {
  /// The header fields to send. Empty if it has another form.
  package var fields: [HeaderField]
  package var hosts: [CredentialHost]
  /// Whether it may be sent without TLS, although everybody on the way can read it then.
  package var allowsHTTP: Bool
  /// The keys that sign requests to S3.
  package var s3: S3Credential?
  /// Signs the web hooks to the hosts; nil where it is not for them.
  package var hookSecret: String?
  /// The program that tells the credential. Then this one has no fields and no keys.
  package var command: CredentialCommand?
  /// When it ends, if that is known.
  package var expiresAt: Timestamp?

  package init(fields: [HeaderField], hosts: [CredentialHost], allowsHTTP: Bool = false) {
    self.fields = fields
    self.hosts = hosts
    self.allowsHTTP = allowsHTTP
  }

  package func isFor(_ url: CurlURL) -> Bool {
    (url.scheme == "https" || allowsHTTP && url.scheme == "http") && hosts.contains { $0.matches(url) }
  }
}

extension Credential: CustomStringConvertible, CustomReflectable {
  package var description: String { "a credential" }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
