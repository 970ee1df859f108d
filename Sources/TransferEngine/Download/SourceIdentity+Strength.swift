import ReelhaulCurl
import TaskCore

extension SourceIdentity {
  /// If a modification time was at least this old when the server sent it, later changes of the file get another time
  /// (RFC 9110, 8.8.2.2).
  private static let settledAfterSeconds: Int64 = 60

  /// Whether two equal identities mean equal bytes, so that another worker may continue with the bytes that are there.
  ///
  /// An identity with a version id or a strong entity tag is strong. A weak tag alone is not. A modification time is
  /// strong if the response's `Date` is at least a minute later, because a file may change within one second and keep
  /// its time. Only the exact form of a date counts: libcurl also reads dates without a time of day, and all versions
  /// of one day share such a date.
  package var isStrong: Bool {
    if versionID != nil { return true }
    if etag != nil, !etagIsWeak { return true }
    guard let modified = lastModified.flatMap(CurlDate.exactSeconds), let date = date.flatMap(CurlDate.exactSeconds)
    else { return false }
    return date - modified >= Self.settledAfterSeconds
  }
}
