import ReelhaulCurl
import TaskCore

/// Decides from a response's head, before a byte of its body is taken, what that body is. Pure.
///
/// libcurl lets everything pass that looks like HTTP: a 206 of another range, without a range, gzip-coded or longer
/// than asked. Here only what is proven to be the bytes asked for is accepted.
struct ResponseGate: Hashable {
  /// What was asked of the server.
  enum Asked: Hashable {
    /// The source's first bytes, of which nothing is known yet.
    case first(count: Int64)
    /// A part of a known version.
    case part(Range<Int64>, of: SourceIdentity)
    /// Everything, in one response.
    case whole
  }

  enum Verdict: Hashable {
    /// The body is this part of the source, to the byte.
    case part(Range<Int64>, of: SourceIdentity)
    /// The body is the whole source from its start.
    case whole(SourceIdentity)
    case redirect(to: String)
    /// The source is another version than the one recorded.
    case changed(IdentityMismatch)
    /// The server sends the whole source, or says the range is beyond its end: ask anew, without `If-Range` or range.
    case unranged
    /// The response proves nothing; the same request may do better.
    case refused(String)
    case status(Int)
  }

  var asked: Asked
  var url: String
  /// What is fetched is no web page, by the names of the source and the destination.
  var isMedia = false

  func judge(_ head: CurlHead) -> Verdict {
    switch head.status {
    case 206: partial(head)
    case 200: whole(head)
    case 301, 302, 303, 307, 308: redirect(head)
    case 412: asked == .whole ? .status(412) : .unranged
    case 416: unsatisfiable(head)
    case 101: .refused("status 101: the server switched to another protocol, which was not asked for")
    case 100..<300: .refused("status \(head.status) carries no file")
    case 300..<400: .refused("status \(head.status) was not asked for")
    default: .status(head.status)
    }
  }

  private func partial(_ head: CurlHead) -> Verdict {
    guard asked != .whole else { return .refused("a part of the file came where the whole was asked for") }
    if let coding = coding(of: head) { return .refused(coding) }
    if isPage(head) { return .refused(Self.page) }
    if head["content-type"]?.lowercased().hasPrefix("multipart/byteranges") == true {
      return .refused("the range came in several parts")
    }
    let values = head.values(of: "content-range")
    guard values.count == 1, let value = ContentRange(values[0]), let range = value.range else {
      return .refused("the range came without a valid Content-Range")
    }
    guard let length = Self.length(of: head), length ?? Int64(range.count) == Int64(range.count) else {
      return .refused("Content-Length and Content-Range disagree")
    }
    let identity = SourceIdentity(head: head, url: url, size: value.total)
    switch asked {
    case .whole:
      return .refused("a part of the file came where the whole was asked for")
    case .first(let count):
      // Without a total no range can be planned, and the end cannot be known from a part; without a length nothing tells
      // whether the body is the range, or more.
      guard let total = value.total, length != nil else { return .unranged }
      guard range == 0..<min(count, total) else { return .refused("another range came than the one asked for") }
      return .part(range, of: identity)
    case .part(let wanted, let known):
      guard length != nil else { return .unranged }
      // Size before range: a source that was cut short answers with a shorter range, and honestly so.
      if let mismatch = known.mismatch(with: identity) { return .changed(mismatch) }
      guard range == wanted else { return .refused("another range came than the one asked for") }
      return .part(range, of: identity)
    }
  }

  private func whole(_ head: CurlHead) -> Verdict {
    if let coding = coding(of: head) { return .refused(coding) }
    guard let length = Self.length(of: head) else { return .refused("Content-Length is not one number") }
    let identity = SourceIdentity(head: head, url: url, size: length)
    if isPage(head) { return .refused(Self.page) }
    if case .part(_, let known) = asked {
      if let mismatch = known.mismatch(with: identity) { return .changed(mismatch) }
      return .unranged
    }
    return .whole(identity)
  }

  private func redirect(_ head: CurlHead) -> Verdict {
    guard let location = head["location"], !location.isEmpty else {
      return .refused("a redirect came without a target")
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
    if !codings.isEmpty { return "the bytes came coded, though identity was asked for" }
    let transfers = head.values(of: "transfer-encoding").map { $0.lowercased() }
    guard transfers.isEmpty || transfers == ["chunked"] else { return "the transfer coding is not chunked" }
    return nil
  }

  /// The one length that all `Content-Length` fields agree on, `.some(nil)` without any, `nil` where they are wrong.
  private static func length(of head: CurlHead) -> Int64?? {
    let values = Set(head.values(of: "content-length"))
    guard let value = values.first, head["transfer-encoding"] == nil else { return .some(nil) }
    guard values.count == 1, let length = ContentRange.number(value[...]) else { return nil }
    return .some(length)
  }

  private static let page = "a web page came in the place of the file"

  /// A login, an error or an outage in the place of the file, with a status of success: for a file that is no page, or
  /// without any validator where the source had one.
  private func isPage(_ head: CurlHead) -> Bool {
    guard head["content-type"]?.lowercased().hasPrefix("text/html") == true else { return false }
    if isMedia || CurlURL(url).map({ Self.isMedia(path: $0.path) }) == true { return true }
    guard case .part(_, let known) = asked else { return false }
    return known.hasValidator && !SourceIdentity(head: head, url: url, size: nil).hasValidator
  }

  /// Whether the path names a file that is no web page, by its extension.
  static func isMedia(path: String) -> Bool {
    guard let dot = path.lastIndex(of: ".") else { return false }
    return mediaExtensions.contains(path[path.index(after: dot)...].lowercased())
  }

  private static let mediaExtensions: Set<String> = [
    "mp4", "m4v", "m4a", "m4s", "mov", "mkv", "webm", "avi", "ts", "m2ts", "mts", "mpg", "mpeg", "wmv", "flv", "mxf",
    "ogv", "3gp", "mp3", "aac", "wav", "flac", "zip", "tar", "gz", "iso", "jpg", "jpeg", "png",
  ]
}
