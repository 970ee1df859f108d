import ReelhaulCurl
import TaskCore

extension SourceIdentity {
  /// The identity that a response tells of: `size` is the whole source's.
  init(head: CurlHead, url: String, size: Int64?) {
    // What is no ASCII is not kept byte by byte: two values might look alike. What is no text cannot be sent back.
    func value(of name: String) -> String? {
      head[name].flatMap { !$0.isEmpty && $0.utf8.allSatisfy { 0x20..<0x7F ~= $0 } ? $0 : nil }
    }
    let given = value(of: "etag")
    let saysWeak = given?.hasPrefix("W/") == true
    var tag = saysWeak ? given.map { String($0.dropFirst(2)) } : given
    if tag == "" || tag == "\"\"" { tag = nil }
    // `null`, `w/"1"` and whatever else is no tag may stand for any bytes, as a weak one may.
    let isWeak = tag.map { saysWeak || !Self.isOpaqueTag($0) } ?? false
    let version = value(of: "x-amz-version-id")
    self.init(
      finalURL: URLRedaction.redact(url), size: size, etag: tag, etagIsWeak: isWeak,
      lastModified: value(of: "last-modified"), date: head["date"],
      // S3's word for an object that is overwritten in place.
      versionID: version == "null" ? nil : version)
  }

  /// RFC 9110, 8.8.3: something between two quotes, without a space or another one.
  private static func isOpaqueTag(_ text: String) -> Bool {
    text.utf8.count > 2 && text.hasPrefix("\"") && text.hasSuffix("\"")
      && text.dropFirst().dropLast().utf8.allSatisfy { $0 > 0x20 && $0 != UInt8(ascii: "\"") }
  }

  var hasValidator: Bool { etag != nil || lastModified != nil || versionID != nil }

  /// What goes into `If-Range`: never a weak tag, nor a time that two versions may share.
  var ifRange: String? {
    if let etag, !etagIsWeak { return etag }
    return isStrong ? lastModified : nil
  }
}
