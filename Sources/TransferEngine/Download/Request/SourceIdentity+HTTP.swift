import ReelhaulCurl
import TaskCore

extension SourceIdentity {
  /// The identity in a response's head. `size` is the size of the whole source.
  init(head: CurlHead, url: String, size: Int64?) {
    // Only printable ASCII is kept. Other bytes are not preserved exactly, so two different values could look equal;
    // and control characters cannot be sent back.
    func value(of name: String) -> String? {
      head[name].flatMap { !$0.isEmpty && $0.utf8.allSatisfy { 0x20..<0x7F ~= $0 } ? $0 : nil }
    }
    let given = value(of: "etag")
    let saysWeak = given?.hasPrefix("W/") == true
    var tag = saysWeak ? given.map { String($0.dropFirst(2)) } : given
    if tag == "" || tag == "\"\"" { tag = nil }
    // A malformed tag such as `null` or `w/"1"` counts as weak: the server may send it for different bytes.
    let isWeak = tag.map { saysWeak || !Self.isOpaqueTag($0) } ?? false
    let version = value(of: "x-amz-version-id")
    self.init(
      finalURL: URLRedaction.redact(url), size: size, etag: tag, etagIsWeak: isWeak,
      lastModified: value(of: "last-modified"), date: value(of: "date"),
      // S3 sends `null` for an object that is overwritten in place.
      versionID: version == "null" ? nil : version)
  }

  /// RFC 9110, 8.8.3: text between two quotes, without a space or a quote in it.
  private static func isOpaqueTag(_ text: String) -> Bool {
    text.utf8.count > 2 && text.hasPrefix("\"") && text.hasSuffix("\"")
      && text.dropFirst().dropLast().utf8.allSatisfy { $0 > 0x20 && $0 != UInt8(ascii: "\"") }
  }

  var hasValidator: Bool { etag != nil || lastModified != nil || versionID != nil }

  /// The value for `If-Range`: never a weak tag, and never a time that two versions may share.
  var ifRange: String? {
    if let etag, !etagIsWeak { return etag }
    return isStrong ? lastModified : nil
  }
}
