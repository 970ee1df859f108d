import Curl
import TaskCore

extension SourceIdentity {
  /// The identity that a response tells of: `size` is the whole source's.
  init(head: CurlHead, url: String, size: Int64?) {
    var tag = head["etag"]
    let isWeak = tag?.hasPrefix("W/") ?? false
    if isWeak { tag?.removeFirst(2) }
    if tag?.isEmpty == true { tag = nil }
    self.init(finalURL: url, size: size, etag: tag, etagIsWeak: isWeak, lastModified: head["last-modified"])
  }

  /// Whether two responses with this identity are of the same bytes: a strong entity tag, or a date.
  var hasStrongValidator: Bool {
    (etag != nil && !etagIsWeak) || lastModified != nil
  }

  /// What goes into `If-Range`: never a weak tag.
  var ifRange: String? {
    if let etag, !etagIsWeak { return etag }
    return lastModified
  }

  /// Why a response of `other` identity is not of the same version of the source; `nil` where it is.
  ///
  /// The final URL may differ: signed URLs and mirrors do. What was recorded must be told again; a strong tag decides
  /// alone, for servers behind one name agree on it more often than on the date.
  func difference(from other: SourceIdentity) -> String? {
    if let size, let otherSize = other.size, size != otherSize { return "its size was \(size) and is \(otherSize)" }
    if let etag {
      guard etag == other.etag, etagIsWeak == other.etagIsWeak else { return "its entity tag has changed" }
      if !etagIsWeak { return nil }
    }
    if let lastModified, lastModified != other.lastModified { return "its date has changed" }
    return nil
  }
}
