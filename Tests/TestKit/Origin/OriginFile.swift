/// One version of a file on an ``OriginServer``, and how well the server follows the protocol for it.
package struct OriginFile: Sendable {
  /// How the server handles `If-Range`.
  package enum IfRange: Sendable {
    /// As in RFC 9110: a range only if the validator matches strongly.
    case honoured
    /// The range is sent whatever the validator.
    case ignored
    /// A date is compared. An entity tag gets the whole file.
    case dateOnly
  }

  package var content: OriginContent
  package var size: Int64
  /// With quotes, and with `W/` if it is weak; nil sends none.
  package var etag: String?
  package var lastModified: String?
  package var contentType = "video/mp4"
  package var acceptsRanges = true
  /// If false, the answer is chunked and does not tell its length in advance.
  package var tellsLength = true
  package var ifRange = IfRange.honoured

  /// A file with a strong entity tag and a date, both made from `seed` and `size`.
  package init(seed: UInt64, size: Int64) {
    content = OriginContent(seed: seed)
    self.size = size
    etag = "\"\(String(seed, radix: 16))-\(size)\""
    let second = String(seed % 60)
    lastModified = "Wed, 01 Jan 2025 00:00:\(second.count == 1 ? "0" : "")\(second) GMT"
  }

  /// The same file after `change`.
  package func with(_ change: (inout OriginFile) -> Void) -> OriginFile {
    var file = self
    change(&file)
    return file
  }

  package func withoutValidators() -> OriginFile {
    with {
      $0.etag = nil
      $0.lastModified = nil
    }
  }

  /// The same file with a weak entity tag and without a date.
  package func withWeakTagOnly() -> OriginFile {
    with {
      $0.etag = etag.map { "W/\($0)" }
      $0.lastModified = nil
    }
  }

  /// The answer of a correct server.
  func answer(to request: OriginRequest) -> OriginResponse {
    guard request.method == "GET" || request.method == "HEAD" else { return .text(405, "method not allowed") }
    if let match = request["if-match"], match != "*", match != etag { return .text(412, "precondition failed") }
    var response: OriginResponse
    switch requestedRange(request) {
    case .whole: response = whole()
    case .part(let range): response = part(range)
    case .unsatisfiable:
      response = OriginResponse(status: 416, body: [])
      response["Content-Range"] = "bytes */\(size)"
      response["Content-Length"] = "0"
    }
    response["ETag"] = etag
    response["Last-Modified"] = lastModified
    response["Content-Type"] = contentType
    if acceptsRanges { response["Accept-Ranges"] = "bytes" }
    if request.method == "HEAD" { response.body = [] }
    return response
  }

  func whole() -> OriginResponse {
    var response = OriginResponse(status: 200, body: [.content(content, 0..<size)])
    if tellsLength {
      response["Content-Length"] = "\(size)"
    } else {
      response.isChunked = true
    }
    return response
  }

  func part(_ range: Range<Int64>) -> OriginResponse {
    var response = OriginResponse(status: 206, body: [.content(content, range)])
    response["Content-Range"] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)"
    response["Content-Length"] = "\(range.count)"
    return response
  }

  private enum Requested {
    case whole, unsatisfiable
    case part(Range<Int64>)
  }

  private func requestedRange(_ request: OriginRequest) -> Requested {
    guard acceptsRanges, tellsLength, let range = request.range, allowsRange(request["if-range"]) else { return .whole }
    let lower = range.first ?? max(0, size - (range.last ?? 0))
    let upper = range.first == nil ? size : min(size, (range.last ?? size - 1) + 1)
    return lower < upper ? .part(lower..<upper) : .unsatisfiable
  }

  private func allowsRange(_ validator: String?) -> Bool {
    guard let validator else { return true }
    let isTag = validator.hasSuffix("\"")
    switch ifRange {
    case .ignored: return true
    case .dateOnly: return !isTag && validator == lastModified
    case .honoured: return validator == (isTag ? etag : lastModified) && !validator.hasPrefix("W/")
    }
  }
}
