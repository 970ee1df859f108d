import ReelhaulCurl
import TaskCore

/// Where a request goes: to the URL that the task names, or where redirects have led from there.
struct Place: Hashable, Sendable {
  /// An absolute http or https URL, normalised.
  var url: String
  /// True if every redirect so far stayed on the first URL's own server. The task's own header fields go only there: once
  /// a redirect has led away, they are not sent any more, wherever the next one leads.
  var isAtOrigin: Bool

  /// The server that it names, as ``HostConnections`` counts.
  var server: String { CurlURL(url)?.server ?? url }

  /// Where an answer sends the request on, with `target` as its `Location`. Throws for what is never followed.
  ///
  /// - Parameters:
  ///   - origin: the URL that the task names.
  ///   - name: what messages call it.
  ///   - mayLoseTLS: whether a redirect may lead from https to http.
  func redirected(
    to target: String, from origin: CurlURL, called name: String, mayLoseTLS: Bool = false
  ) throws(TaskFailure) -> Place {
    func refuse(_ reason: String) -> TaskFailure {
      TaskFailure(code: .redirectRefused, message: "\(name) redirects to a URL \(reason)", class: .fail)
    }
    guard let next = CurlURL(url)?.resolving(target), next.scheme == "http" || next.scheme == "https" else {
      throw refuse("that is not http or https")
    }
    guard next.text.utf8.count <= TaskSpec.urlLimit else { throw refuse("of more than \(TaskSpec.urlLimit) bytes") }
    guard !next.hasCredentials else { throw refuse("with credentials in it") }
    guard next.scheme == "https" || !url.hasPrefix("https:") || mayLoseTLS else {
      throw refuse(
        "without TLS, which is followed only by a download, or a copy to a storage, whose SHA-256 is expected")
    }
    return Place(url: next.text, isAtOrigin: isAtOrigin && next.isSameOrigin(as: origin))
  }

  /// There are too many redirects.
  static func redirectLoop(_ name: String, limit: Int) -> TaskFailure {
    TaskFailure(code: .redirectLoop, message: "\(name) redirects more than \(limit) times", class: .fail)
  }
}
