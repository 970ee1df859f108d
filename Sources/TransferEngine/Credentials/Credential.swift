import ReelhaulCurl
import TaskCore

/// What a worker proves itself with, and to which hosts it may. Its description shows neither.
package struct Credential: Hashable, Sendable {
  /// What is sent.
  package var fields: [HeaderField]
  package var hosts: [CredentialHost]
  /// Whether it may be sent without TLS, where everybody on the way can read it.
  package var allowsHTTP: Bool

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
