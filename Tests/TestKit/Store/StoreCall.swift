/// One request with its whole body, for the protocols' answers.
struct StoreCall {
  let request: StoreRequest
  let body: StorePiece
  let faults: [StoreFault]
  /// `http://127.0.0.1:PORT`
  let origin: String

  var bodyText: String { String(decoding: body.bytes(0..<body.size) ?? [], as: UTF8.self) }

  /// The conditions of the request, unless the store ignores them.
  func precondition(_ state: StoreState, _ key: String) -> OriginResponse? {
    guard !faults.ignoresConditions else { return nil }
    var request = request
    if faults.looksAtIfMatchAlone { request.headers.removeAll { $0.name == "if-none-match" } }
    return state.precondition(request, key)
  }

  /// A GET's or HEAD's answer with the object, or the range asked for.
  func answer(with object: StoreObject) -> OriginResponse {
    if let match = request["if-match"], match != "*", match != object.etag {
      return StoreXML.error(412, "PreconditionFailed", "At least one of the preconditions did not hold")
    }
    if let match = request["if-none-match"], match == "*" || match == object.etag {
      var response = OriginResponse(status: 304, body: [])
      response["ETag"] = object.etag
      return response
    }
    var range = 0..<object.size
    var isPart = false
    if let asked = OriginRequest(head: "GET / HTTP/1.1\r\nrange: \(request["range"] ?? "")")?.range {
      let first = asked.first ?? max(0, object.size - (asked.last ?? 0))
      let last = asked.first == nil ? object.size - 1 : min(object.size - 1, asked.last ?? .max)
      guard first <= last else {
        var response = StoreXML.error(416, "InvalidRange", "The requested range is not satisfiable")
        response["Content-Range"] = "bytes */\(object.size)"
        return response
      }
      range = first..<last + 1
      isPart = true
    }
    var steps: [OriginResponse.Step] = []
    if request.method != "HEAD" {
      guard let parts = object.part(range) else {
        return .text(500, "the store has kept digests only (StoreOptions.keepsBodiesUpTo)")
      }
      for part in faults.corrupts ? faults.damaged(parts) : parts {
        guard let piece = part.steps(0..<part.size) else {
          return .text(500, "the store has kept digests only (StoreOptions.keepsBodiesUpTo)")
        }
        steps += piece
      }
    }
    var response = OriginResponse(status: isPart ? 206 : 200, body: steps)
    response["Content-Length"] = "\(range.count)"
    if isPart { response["Content-Range"] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(object.size)" }
    response["Accept-Ranges"] = "bytes"
    response["ETag"] = object.etag
    response["Last-Modified"] = StoreText.date(object.modified)
    response["Content-Type"] = "application/octet-stream"
    for (name, value) in object.headers { response[name] = value }
    return response
  }

  /// Whether the checksums that came with the body fit; else the answer.
  func badDigest() -> OriginResponse? {
    if let md5 = request["content-md5"], StoreText.base64(md5) != body.md5 {
      return StoreXML.error(400, "BadDigest", "The Content-MD5 you specified did not match what we received.")
    }
    // Those of a completion are of the object.
    for (kind, value) in request.checksums
    where request.operation != .completeUpload && StoreText.base64(value) != body.checksums[kind] {
      return StoreXML.error(
        400, "BadDigest", "The \(kind.rawValue.uppercased()) you specified did not match the calculated checksum.")
    }
    return nil
  }
}
