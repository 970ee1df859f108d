import ReelhaulCurl
import TaskCore

extension SourceIdentity {
  /// A modification time this old when it was served will not be given to other bytes as well (RFC 9110, 8.8.2.2).
  private static let settledAfterSeconds: Int64 = 60

  /// Whether two equal identities mean equal bytes, so that another worker may go on with the bytes that are there.
  ///
  /// A version id and a strong entity tag are; a weak tag is not. A modification time is where the server's own clock
  /// was a minute ahead of it: within one second a file may change and keep its time. Only the exact form of a date
  /// counts: libcurl also reads dates without a time of day, which all versions of a day share.
  package var isStrong: Bool {
    if versionID != nil { return true }
    if etag != nil, !etagIsWeak { return true }
    guard let modified = lastModified.flatMap(CurlDate.exactSeconds), let date = date.flatMap(CurlDate.exactSeconds)
    else { return false }
    return date - modified >= Self.settledAfterSeconds
  }
}
