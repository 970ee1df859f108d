import Curl
import TaskCore

extension SourceIdentity {
  /// The identity that a response tells of: `size` is the whole source's.
  init(head: CurlHead, url: String, size: Int64?) {
    var tag = head["etag"]
    let isWeak = tag?.hasPrefix("W/") ?? false
    if isWeak { tag?.removeFirst(2) }
    if tag?.isEmpty == true { tag = nil }
    self.init(
      finalURL: URLRedaction.redact(url), size: size, etag: tag, etagIsWeak: isWeak,
      lastModified: head["last-modified"], date: head["date"], versionID: head["x-amz-version-id"])
  }

  /// What goes into `If-Range`: never a weak tag, nor a time that two versions may share.
  var ifRange: String? {
    if let etag, !etagIsWeak { return etag }
    return isStrong ? lastModified : nil
  }
}
