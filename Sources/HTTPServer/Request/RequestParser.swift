import CReelhaulHTTP

/// Reads HTTP/1 requests from bytes, one at a time. No I/O.
///
/// llhttp, in its strict mode, decides what a request is. Here are the sizes, and what it leaves to its user.
// @unchecked: used only on its connection's loop.
final class RequestParser: @unchecked Sendable {
  /// What the bytes so far are.
  enum Progress {
    /// Part of a head.
    case head
    /// A head whose body has not come yet: ``proceed(limit:)`` lets it in.
    case announced(HTTPRequest, expectsContinue: Bool)
    /// Part of a body.
    case body
    case request(HTTPRequest, keepsAlive: Bool)
    case failed(HTTPError)
  }

  struct Limits {
    var head = 16 << 10
    var fields = 64
    var target = 8 << 10
  }

  private let limits: Limits
  private let parser = UnsafeMutablePointer<llhttp_t>.allocate(capacity: 1)
  /// Bytes that came after what is read so far.
  private var rest: [UInt8] = []

  private var target: [UInt8] = []
  private var name: [UInt8] = []
  private var value: [UInt8] = []
  private var headers = HTTPFields()
  private var body: [UInt8] = []
  private var headBytes = 0
  private var bodyLimit = 0
  private var chunkExtras = 0
  private var isPastHead = false
  private var isComplete = false
  private var wantsBody = false
  private var error: HTTPError?
  private var lines = HeadLines()

  init(limits: Limits = Limits()) {
    self.limits = limits
    llhttp_init(parser, HTTP_REQUEST, Self.settings.pointer)
    parser.pointee.data = Unmanaged.passUnretained(self).toOpaque()
  }

  deinit {
    parser.deallocate()
  }

  /// What is known of the request, if its head has come.
  var head: HTTPRequest? {
    guard isPastHead else { return nil }
    var head = request
    head.body = []
    return head
  }

  /// How much of the body has come.
  var bodyBytes: Int { body.count }
  /// Whether bytes wait that no request has used.
  var pending: Int { rest.count }
  /// Whether a request has begun.
  private(set) var hasBegun = false

  func feed(_ bytes: UnsafeRawBufferPointer) -> Progress {
    // llhttp's places lie within the bytes that it is given, so bytes that waited come first.
    guard rest.isEmpty else {
      rest.append(contentsOf: bytes)
      return next()
    }
    return execute(bytes)
  }

  /// Reads on with the bytes that wait.
  func next() -> Progress {
    let waiting = rest
    rest = []
    return waiting.withUnsafeBytes { execute($0) }
  }

  /// Forgets the bytes that wait.
  func drop() { rest = [] }

  /// Keeps bytes for later, because an earlier request is not answered yet.
  func keep(_ bytes: UnsafeRawBufferPointer) { rest.append(contentsOf: bytes) }

  /// Lets the body of the announced request in, if it has at most `limit` bytes.
  func proceed(limit: Int) -> Progress {
    bodyLimit = limit
    wantsBody = true
    let isFramed = parser.pointee.flags & UInt16(F_CONTENT_LENGTH.rawValue) != 0
    if isFramed, parser.pointee.content_length > UInt64(limit) { return .failed(Self.tooLong(limit)) }
    llhttp_resume(parser)
    return next()
  }

  /// Prepares for the request after one that is answered.
  func reset() {
    target = []
    headers = HTTPFields()
    body = []
    (name, value, lines) = ([], [], HeadLines())
    (headBytes, bodyLimit, chunkExtras) = (0, 0, 0)
    (isPastHead, isComplete, wantsBody, hasBegun) = (false, false, false, false)
    if parser.pointee.error == Int32(HPE_PAUSED.rawValue) { llhttp_resume(parser) }
  }

  private func execute(_ bytes: UnsafeRawBufferPointer) -> Progress {
    guard let start = bytes.bindMemory(to: CChar.self).baseAddress, !bytes.isEmpty else { return standing }
    if !isPastHead, bytes.contains(where: { $0 != 13 && $0 != 10 }) { hasBegun = true }
    if let wrong = lines.read(bytes) { return .failed(HTTPError(400, wrong)) }
    let code = llhttp_execute(parser, start, bytes.count)
    if let error { return .failed(error) }
    switch code {
    case HPE_OK:
      if !isPastHead {
        // A name, a value or a target may be cut in the middle.
        headBytes += bytes.count
        if headBytes > limits.head { return .failed(HTTPError(431, "the head has more than \(limits.head) bytes")) }
      }
      return standing
    case HPE_PAUSED:
      let used = llhttp_get_error_pos(parser).map { $0 - start } ?? bytes.count
      rest = Array(bytes[min(max(0, used), bytes.count)...])
      return standing
    case HPE_PAUSED_UPGRADE:
      // Another protocol is not spoken: the request counts as it is.
      let used = llhttp_get_error_pos(parser).map { $0 - start } ?? bytes.count
      rest = Array(bytes[min(max(0, used), bytes.count)...])
      llhttp_resume_after_upgrade(parser)
      return isComplete ? standing : next()
    default:
      return .failed(Self.error(for: code, String(cString: llhttp_get_error_reason(parser))))
    }
  }

  private var standing: Progress {
    if isComplete { return .request(request, keepsAlive: llhttp_should_keep_alive(parser) != 0) }
    guard isPastHead else { return .head }
    guard wantsBody else {
      return .announced(request, expectsContinue: headers["expect"]?.lowercased() == "100-continue")
    }
    return .body
  }

  private var request: HTTPRequest {
    let method = String(cString: llhttp_method_name(llhttp_method_t(UInt32(parser.pointee.method))))
    return HTTPRequest(method: method, target: String(decoding: target, as: UTF8.self), headers: headers, body: body)
  }

  // MARK: What llhttp reports

  private static let settings = Settings()

  // @unchecked: never changed after its beginning.
  private final class Settings: @unchecked Sendable {
    let pointer = UnsafeMutablePointer<llhttp_settings_t>.allocate(capacity: 1)

    init() {
      llhttp_settings_init(pointer)
      pointer.pointee.on_url = { RequestParser.of($0).url($1!, $2) }
      pointer.pointee.on_header_field = { RequestParser.of($0).headerName($1!, $2) }
      pointer.pointee.on_header_value = { RequestParser.of($0).headerValue($1!, $2) }
      pointer.pointee.on_header_value_complete = { RequestParser.of($0).headerEnd() }
      pointer.pointee.on_headers_complete = { RequestParser.of($0).headEnd() }
      pointer.pointee.on_chunk_header = { RequestParser.of($0).chunk() }
      pointer.pointee.on_chunk_extension_name = { RequestParser.of($0).chunkExtension($2) }
      pointer.pointee.on_chunk_extension_value = { RequestParser.of($0).chunkExtension($2) }
      pointer.pointee.on_body = { RequestParser.of($0).bodyPart($1!, $2) }
      pointer.pointee.on_message_complete = { RequestParser.of($0).end() }
    }
  }

  private static func of(_ parser: UnsafeMutablePointer<llhttp_t>?) -> RequestParser {
    Unmanaged<RequestParser>.fromOpaque(parser!.pointee.data).takeUnretainedValue()
  }

  private func fail(_ status: Int, _ message: String) -> Int32 {
    if error == nil { error = HTTPError(status, message) }
    return -1
  }

  private func url(_ at: UnsafePointer<CChar>, _ count: Int) -> Int32 {
    target.append(contentsOf: UnsafeRawBufferPointer(start: at, count: count))
    return target.count > limits.target ? fail(414, "the target has more than \(limits.target) bytes") : 0
  }

  private func headerName(_ at: UnsafePointer<CChar>, _ count: Int) -> Int32 {
    name.append(contentsOf: UnsafeRawBufferPointer(start: at, count: count))
    return grown(by: count)
  }

  private func headerValue(_ at: UnsafePointer<CChar>, _ count: Int) -> Int32 {
    value.append(contentsOf: UnsafeRawBufferPointer(start: at, count: count))
    return grown(by: count)
  }

  private func grown(by count: Int) -> Int32 {
    guard !isPastHead else {
      chunkExtras += count
      return chunkExtras > limits.head ? fail(431, "the trailers are too long") : 0
    }
    let size = headers.fields.reduce(target.count + name.count + value.count) {
      $0 + $1.name.utf8.count + $1.value.utf8.count + 4
    }
    return size > limits.head ? fail(431, "the head has more than \(limits.head) bytes") : 0
  }

  private func headerEnd() -> Int32 {
    defer { (name, value) = ([], []) }
    // Trailers are not used.
    guard !isPastHead else { return 0 }
    guard headers.fields.count < limits.fields else { return fail(431, "there are more than \(limits.fields) fields") }
    while value.last == 0x20 || value.last == 9 { value.removeLast() }
    headers.append(String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self))
    return 0
  }

  private func headEnd() -> Int32 {
    let (major, minor) = (parser.pointee.http_major, parser.pointee.http_minor)
    guard major == 1, minor <= 1 else { return fail(505, "only HTTP/1.0 and HTTP/1.1 are spoken") }
    let hosts = headers.all("host")
    guard hosts.count == 1 || (hosts.isEmpty && minor == 0) else { return fail(400, "there must be one Host") }
    for name in Self.single where headers.all(name).count > 1 { return fail(400, "there is more than one \(name)") }
    guard shortenTarget(for: hosts.first) else { return fail(400, "the target names another host than Host does") }
    if let coding = headers["transfer-encoding"] {
      guard minor == 1 else { return fail(400, "HTTP/1.0 has no Transfer-Encoding") }
      guard coding.lowercased() == "chunked", headers.all("transfer-encoding").count == 1 else {
        return fail(501, "only chunked is read of Transfer-Encoding")
      }
      guard headers["content-length"] == nil else { return fail(400, "a body has two lengths") }
    }
    if let expect = headers["expect"], expect.lowercased() != "100-continue" || minor == 0 {
      return fail(417, "only 100-continue can be expected")
    }
    isPastHead = true
    let flags = parser.pointee.flags
    let hasBody =
      flags & UInt16(F_CHUNKED.rawValue) != 0
      || (flags & UInt16(F_CONTENT_LENGTH.rawValue) != 0 && parser.pointee.content_length > 0)
    guard hasBody else {
      wantsBody = true
      return 0
    }
    return Int32(HPE_PAUSED.rawValue)
  }

  /// Fields of which two would leave it to chance which one counts.
  private static let single = ["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"]

  /// Leaves the path of a target that is a whole URL (RFC 9112, 3.2.2). Returns whether it is one of `host`.
  private func shortenTarget(for host: String?) -> Bool {
    guard target.first != UInt8(ascii: "/"), let scheme = target.firstRange(of: Array("://".utf8)) else { return true }
    let rest = target[scheme.upperBound...]
    let authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
    let path = rest[authority.endIndex...]
    target = (path.first == UInt8(ascii: "/") ? [] : [UInt8(ascii: "/")]) + path
    return host.map { String(decoding: authority, as: UTF8.self).lowercased() == $0.lowercased() } ?? true
  }

  private func chunk() -> Int32 {
    let length = parser.pointee.content_length
    guard length <= UInt64(bodyLimit), body.count + Int(length) <= bodyLimit else {
      error = Self.tooLong(bodyLimit)
      return -1
    }
    return 0
  }

  private func chunkExtension(_ count: Int) -> Int32 {
    chunkExtras += count
    return chunkExtras > 4096 ? fail(400, "the extensions of chunks are too long") : 0
  }

  private func bodyPart(_ at: UnsafePointer<CChar>, _ count: Int) -> Int32 {
    guard body.count + count <= bodyLimit else {
      error = Self.tooLong(bodyLimit)
      return -1
    }
    body.append(contentsOf: UnsafeRawBufferPointer(start: at, count: count))
    return 0
  }

  private func end() -> Int32 {
    isComplete = true
    return Int32(HPE_PAUSED.rawValue)
  }

  private static func tooLong(_ limit: Int) -> HTTPError { HTTPError(413, "the body has more than \(limit) bytes") }

  private static func error(for code: llhttp_errno_t, _ reason: String) -> HTTPError {
    switch code {
    case HPE_INVALID_VERSION: HTTPError(505, "only HTTP/1.0 and HTTP/1.1 are spoken")
    case HPE_INVALID_METHOD: HTTPError(501, "the method is not known", code: HTTPError.unknownMethod)
    case HPE_INVALID_TRANSFER_ENCODING: HTTPError(501, "only chunked is read of Transfer-Encoding")
    default: HTTPError(400, "this is no HTTP request: \(reason)")
    }
  }
}
