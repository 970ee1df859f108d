/// One fault of a server: a change to the correct answer. Several faults are applied in order.
package enum OriginFault: Sendable {
  // Faults of the content.

  /// 200 and the whole file, whatever range was requested.
  case ignoresRange
  /// 206 for another range than the requested one, with a correct Content-Range.
  case shiftsRange(start: Int64, end: Int64)
  /// 206 for at most this number of bytes of the requested range, with a correct Content-Range.
  case limitsRange(to: Int64)
  /// The total in `Content-Range` is wrong by this number of bytes.
  case wrongTotal(by: Int64)
  /// Sets or removes a header field, whatever the body is: `("Content-Range", nil)`, `("Content-Range", "bytes */*")`.
  case header(String, String?)
  /// The body is shorter than its `Content-Range` says by this number of bytes. `Content-Length` agrees with the body.
  case shortBody(by: Int64)
  /// The body is longer than its `Content-Range` says by this number of bytes. `Content-Length` agrees with the body.
  case longBody(by: Int64)
  /// These bytes follow the body beyond its length, like the beginning of an answer without a request.
  case surplus(String)
  /// The body is declared as gzip and begins like gzip, with its former length.
  case gzip
  /// 206 as `multipart/byteranges` with one part.
  case multipart
  /// 200 with the file's first bytes, as if that were the whole file.
  case wholeOfLength(Int64)
  /// A completely different answer: 416 with a body, 429, 503, a login page as 200 …
  case answer(Int, headers: [(String, String)] = [], body: String = "")
  case redirect(to: String, status: Int = 302)
  /// A new entity tag for every answer.
  case freshTag
  /// The file has this entity tag, as at one of several servers that name the same bytes differently.
  case tag(String)
  /// `HEAD` is answered with this length.
  case headLength(Int64)
  /// This number of extra header fields of 100 bytes.
  case headerFlood(Int)
  /// Chunked, without a length.
  case chunked
  /// HTTP/1.0: the whole file without a length, ended by the end of the connection, of the given bytes or the file's.
  case unframed([UInt8]? = nil)

  // Faults of the sending.

  /// The connection ends after this number of body bytes; nil: before the head.
  case cut(after: Int64?, reset: Bool = false)
  /// Stops after this number of body bytes until the gate opens; nil: before the head.
  case hold(after: Int64?, OriginGate)
  /// The file is replaced after this number of body bytes, and the rest comes from the new file.
  case swap(after: Int64, to: OriginFile)
  case pace(bytesPerSecond: Int)

  func apply(to response: inout OriginResponse, request: OriginRequest, file: OriginFile?) {
    switch self {
    case .ignoresRange:
      guard let file else { return }
      var plain = request
      plain.headers.removeAll { $0.name == "range" }
      response = file.answer(to: plain)
    case .shiftsRange(let start, let end):
      guard let file, response.status == 206, case .content(_, let range) = response.body.first else { return }
      let first = range.lowerBound + start
      let part = file.part(first..<max(first + 1, range.upperBound + end))
      response.body = part.body
      response["Content-Range"] = part["Content-Range"]
      response["Content-Length"] = part["Content-Length"]
    case .limitsRange(let count):
      guard case .content(_, let range) = response.body.first else { return }
      let surplus = Int64(range.count) - count
      if surplus > 0 { Self.shiftsRange(start: 0, end: -surplus).apply(to: &response, request: request, file: file) }
    case .wrongTotal(let difference):
      guard let file, response.status == 206, case .content(_, let range) = response.body.first else { return }
      response["Content-Range"] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(file.size + difference)"
    case .header(let name, let value):
      response[name] = value
    case .shortBody(let difference):
      response.cut(to: response.length - difference)
      response["Content-Length"] = "\(response.length)"
    case .longBody(let difference):
      response.body.append(.bytes(Array(repeating: 0x2A, count: Int(difference))))
      response["Content-Length"] = "\(response.length)"
    case .surplus(let text):
      response.body.append(.bytes(Array(text.utf8)))
    case .gzip:
      let magic: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3]
      guard response.length > magic.count, let first = response.body.first else { return }
      response.body[0] = first.split(at: Int64(magic.count)).1
      response.body.insert(.bytes(magic), at: 0)
      response["Content-Encoding"] = "gzip"
    case .multipart:
      guard response.status == 206, let range = response["Content-Range"] else { return }
      response["Content-Range"] = nil
      response["Content-Type"] = "multipart/byteranges; boundary=seam"
      response.body.insert(.bytes(Array("\r\n--seam\r\nContent-Range: \(range)\r\n\r\n".utf8)), at: 0)
      response.body.append(.bytes(Array("\r\n--seam--\r\n".utf8)))
      response["Content-Length"] = "\(response.length)"
    case .wholeOfLength(let length):
      guard let file else { return }
      let (etag, date) = (response["ETag"], response["Last-Modified"])
      response = file.with { $0.size = length }.whole()
      response["ETag"] = etag
      response["Last-Modified"] = date
    case .answer(let status, let headers, let body):
      response = .text(status, body, type: "text/html")
      for (name, value) in headers { response[name] = value }
    case .redirect(let target, let status):
      response = .text(status, "elsewhere")
      response["Location"] = target
    case .freshTag:
      response["ETag"] = "\"\(request.path)-\(request.number)\""
    case .tag(let tag):
      if let file { response = file.with { $0.etag = tag }.answer(to: request) }
    case .headLength(let length):
      if request.method == "HEAD" { response["Content-Length"] = "\(length)" }
    case .headerFlood(let count):
      let value = String(repeating: "x", count: 80)
      for number in 0..<count { response.headers.append(("X-Flood-\(number)", value)) }
    case .chunked:
      response["Content-Length"] = nil
      response.isChunked = true
    case .unframed(let bytes):
      Self.ignoresRange.apply(to: &response, request: request, file: file)
      if let bytes { response.body = [.bytes(bytes)] }
      response["Content-Length"] = nil
      response["Accept-Ranges"] = nil
      response.isChunked = false
      response.version = "1.0"
    case .cut(let offset, let reset):
      response.insert(reset ? .reset : .close, after: offset)
    case .hold(let offset, let gate):
      // A body that ends there is complete, and its client may send the next request over the same connection.
      if let offset, offset >= response.length { return }
      response.insert(.hold(gate), after: offset)
    case .swap(let offset, let file):
      response.insert(.install(file), at: offset)
      guard let index = response.body.firstIndex(where: { if case .install = $0 { true } else { false } }) else {
        return
      }
      for later in response.body.indices[index...] {
        if case .content(_, let range) = response.body[later] { response.body[later] = .content(file.content, range) }
      }
    case .pace(let rate):
      response.body.insert(.pace(bytesPerSecond: rate), at: 0)
    }
  }
}

extension OriginResponse {
  fileprivate mutating func insert(_ step: Step, after offset: Int64?) {
    if let offset { insert(step, at: offset) } else { prelude.append(step) }
  }
}
