import Curl
import TaskCore

extension SourceIdentity {
  /// The identity that a response tells of: `size` is the whole source's.
  init(head: CurlHead, url: String, size: Int64?) {
    // What is no ASCII is not kept byte by byte: two values might look alike.
    func value(of name: String) -> String? { head[name].flatMap { $0.utf8.allSatisfy { $0 < 0x80 } ? $0 : nil } }
    var tag = value(of: "etag")
    let isWeak = tag?.hasPrefix("W/") ?? false
    if isWeak { tag?.removeFirst(2) }
    if tag?.isEmpty == true { tag = nil }
    self.init(
      finalURL: URLRedaction.redact(url), size: size, etag: tag, etagIsWeak: isWeak,
      lastModified: value(of: "last-modified"), date: head["date"], versionID: value(of: "x-amz-version-id"))
  }

  /// What goes into `If-Range`: never a weak tag, nor a time that two versions may share.
  var ifRange: String? {
    if let etag, !etagIsWeak { return etag }
    return isStrong ? lastModified : nil
  }
}
