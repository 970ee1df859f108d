import ReelhaulCurl
import TaskCore

/// Decides from a response's head what its body is, before a byte of the body is accepted. Pure.
///
/// libcurl accepts everything that looks like HTTP: a 206 with another range, without a range, gzip-coded or longer
/// than requested. The gate accepts a body only if the head proves that it is the requested bytes.
struct ResponseGate: Hashable {
  /// What was requested from the server.
  enum Asked: Hashable {
    /// The first bytes of a source of which nothing is known yet.
    case first(count: Int64)
    /// A part of a known version.
    case part(Range<Int64>, of: SourceIdentity)
    /// Everything, in one response.
    case whole
  }

  enum Verdict: Hashable {
    /// The body is this part of the source, to the byte: the beginning of what was asked for, or all of it.
    case part(Range<Int64>, of: SourceIdentity)
    /// The body is the whole source from its start.
    case whole(SourceIdentity)
    case redirect(to: String)
    /// The source is another version than the one recorded.
    case changed(IdentityMismatch)
    /// The response does not give the range in a usable way. Ask again without `If-Range`, then without a range.
    case unranged
    /// The response proves nothing. The same request may succeed later. `ofRange`: only because of how the server sends
    /// ranges, so the whole may come right.
    case refused(String, ofRange: Bool = false)
    case status(Int)
  }

  var asked: Asked
  var url: String
  /// Whether the source or the destination has the name of a media file or an archive, and so cannot be a web page.
  var isMedia = false
  /// Whether the source is an object of S3: its bytes are as they were stored, and a coding is a property of them.
  var isObject = false

  func judge(_ head: CurlHead) -> Verdict {
    switch head.status {
    case 206: partial(head)
    case 200: isPart(head) ? partial(head) : whole(head)
    case 301, 302, 303, 307, 308: redirect(head)
    case 412: asked == .whole ? .status(412) : .unranged
    case 416: unsatisfiable(head)
    case 101: .refused("status 101: the server switched to another protocol, which was not asked for")
    case 100..<300: .refused("a response with status \(head.status) contains no file")
    case 300..<400: .refused("the server sent status \(head.status), which does not fit the request")
    default: .status(head.status)
    }
  }

  private func partial(_ head: CurlHead) -> Verdict {
    guard asked != .whole else { return .refused("the server sent a part of the file, not the whole") }
    if let coding = coding(of: head) { return .refused(coding, ofRange: true) }
    if isPage(head) { return .refused(Self.page) }
    if head["content-type"]?.lowercased().hasPrefix("multipart/byteranges") == true {
      return .refused("the server sent the range in several parts", ofRange: true)
    }
    let values = head.values(of: "content-range")
    guard values.count == 1, let value = ContentRange(values[0]), let range = value.range else {
      return .refused("the server sent a range without a valid Content-Range", ofRange: true)
    }
    guard let length = Self.length(of: head) else { return .refused(Self.severalLengths) }
    guard length ?? Int64(range.count) == Int64(range.count) else {
      return .refused("Content-Length and Content-Range disagree")
    }
    let identity = SourceIdentity(head: head, url: url, size: value.total)
    switch asked {
    case .whole:
      return .refused("the server sent a part of the file, not the whole")
    case .first(let count):
      // Without a total, the source's end is unknown and no ranges can be planned. Without a length, the body may be
      // longer than the range.
      guard let total = value.total, length != nil else { return .unranged }
      guard isServed(0..<min(count, total), by: range) else { return .refused(Self.otherRange, ofRange: true) }
      return .part(range, of: identity)
    case .part(let wanted, let known):
      // Identity before range: a source that has become shorter correctly answers with a shorter range.
      if let mismatch = known.mismatch(with: identity) { return .changed(mismatch) }
      guard length != nil else { return .unranged }
      guard isServed(wanted, by: range) else { return .refused(Self.otherRange, ofRange: true) }
      return .part(range, of: identity)
    }
  }

  /// Whether the range begins as wanted and does not go beyond. Servers may send less than was asked for, and some never
  /// send more than a megabyte; the rest takes further requests, which must not be too many.
  private func isServed(_ wanted: Range<Int64>, by range: Range<Int64>) -> Bool {
    range.lowerBound == wanted.lowerBound && range.upperBound <= wanted.upperBound
      && range.count >= min(wanted.count, Self.shortestAnswer)
  }

  /// Some stores answer a range with status 200. Such a body is a part, and must never pass for the whole.
  private func isPart(_ head: CurlHead) -> Bool {
    guard let value = head["content-range"].flatMap(ContentRange.init), let range = value.range,
      let total = value.total, let length = Self.length(of: head)
    else { return false }
    return Int64(range.count) < total && length == Int64(range.count)
  }

  private func whole(_ head: CurlHead) -> Verdict {
    if let coding = coding(of: head) { return .refused(coding) }
    guard let length = Self.length(of: head) else { return .refused(Self.severalLengths) }
    let identity = SourceIdentity(head: head, url: url, size: length)
    if isPage(head) { return .refused(Self.page) }
    if case .part(let wanted, let known) = asked {
      if let mismatch = known.mismatch(with: identity) { return .changed(mismatch) }
      // A range of all bytes is the whole, and some servers call it so.
      return length.map { 0..<$0 } == wanted ? .part(wanted, of: identity) : .unranged
    }
    // Just as long as the range: some stores send a part without saying so.
    if case .first(let count) = asked, length == count, head["content-range"] == nil { return .unranged }
    return .whole(identity)
  }

  private func redirect(_ head: CurlHead) -> Verdict {
    guard let location = head["location"], !location.isEmpty else {
      // The bucket is in another region: the store tells which in other ways.
      if isObject { return .status(head.status) }
      return .refused("the server sent a redirect without a target")
    }
    return .redirect(to: location)
  }

  private func unsatisfiable(_ head: CurlHead) -> Verdict {
    if case .part(_, let known) = asked, let value = head["content-range"].flatMap(ContentRange.init),
      let total = value.total, let size = known.size, total != size
    {
      return .changed(.size(recorded: size, seen: total))
    }
    return asked == .whole ? .status(416) : .unranged
  }

  private func coding(of head: CurlHead) -> String? {
    let codings = head.values(of: "content-encoding").filter { !["", "identity"].contains($0.lowercased()) }
    if !codings.isEmpty, !isObject { return "the server sent encoded bytes, although identity was requested" }
    let transfers = head.values(of: "transfer-encoding").map { $0.lowercased() }
    guard transfers.isEmpty || transfers == ["chunked"] else { return "the transfer coding is not chunked" }
    return nil
  }

  /// The length on which all `Content-Length` fields agree, each a number or a list of it (RFC 9110, 8.6). Returns
  /// `.some(nil)` if there is none or if `Transfer-Encoding` overrides it, and `nil` if the fields are wrong.
  private static func length(of head: CurlHead) -> Int64?? {
    let fields = head.values(of: "content-length")
    guard !fields.isEmpty, head["transfer-encoding"] == nil else { return .some(nil) }
    let values = Set(
      fields.flatMap { field in
        field.split(separator: ",", omittingEmptySubsequences: false).map { $0.drop { $0 == " " || $0 == "\t" } }
      })
    guard values.count == 1, let length = values.first.flatMap(ContentRange.number) else { return nil }
    return .some(length)
  }

  private static let shortestAnswer = 64 << 10
  private static let severalLengths = "Content-Length is not one number"
  private static let otherRange = "the server sent a different range than requested"
  private static let page = "the server sent a web page instead of the file"

  /// Whether the body is a web page instead of the file, such as a login or an error with a status of success. An HTML
  /// response is such a page if the file has the name of a media file or an archive, or if the source had a validator
  /// and the response has none.
  private func isPage(_ head: CurlHead) -> Bool {
    guard head["content-type"]?.lowercased().hasPrefix("text/html") == true else { return false }
    if isMedia || CurlURL(url).map({ Self.isMedia(path: $0.path) }) == true { return true }
    guard case .part(_, let known) = asked else { return false }
    return known.hasValidator && !SourceIdentity(head: head, url: url, size: nil).hasValidator
  }

  /// Whether the path has the extension of a media file or an archive.
  static func isMedia(path: String) -> Bool {
    guard let dot = path.lastIndex(of: ".") else { return false }
    return mediaExtensions.contains(path[path.index(after: dot)...].lowercased())
  }

  private static let mediaExtensions: Set<String> = [
    "mp4", "m4v", "m4a", "m4s", "mov", "mkv", "webm", "avi", "ts", "m2ts", "mts", "mpg", "mpeg", "wmv", "flv", "mxf",
    "ogv", "3gp", "mp3", "aac", "wav", "flac", "zip", "tar", "gz", "iso", "jpg", "jpeg", "png",
  ]
}
