import ReelhaulDigest

// Plain HTTP under /put.
extension StoreCall {
  func answerPut(_ state: inout StoreState) -> OriginResponse {
    let key = request.key
    switch request.operation {
    case .put, .post:
      // RFC 9110, 14.5: a server that does not know partial PUT must not take it for a whole one.
      if request["content-range"] != nil { return .text(400, "Content-Range is not understood") }
      if let refusal = precondition(state, key) { return refusal }
      if let refusal = badDigest() { return refusal }
      for name in ["repr-digest", "content-digest"] {
        guard let value = request[name] else { continue }
        guard value == "sha-256=:\(Base64.encode(body.sha256)):" else { return .text(400, "\(name) does not fit") }
      }
      var object = StoreObject(pieces: faults.damaged([body]))
      let etag = StoreObject(pieces: [body]).etag
      object.etag = etag
      object.headers = request.kept
      let isNew = state.object(key) == nil
      if !faults.losesObject { _ = state.put(key, object) }
      var response = OriginResponse.text(isNew ? 201 : 204, "")
      if !isNew { response["Content-Length"] = nil }
      response["ETag"] = etag
      response["Repr-Digest"] = request["repr-digest"]
      return response
    case .get, .head:
      guard let object = state.object(key) else { return .text(404, "not found") }
      return answer(with: object)
    case .delete:
      guard state.object(key) != nil else { return .text(404, "not found") }
      if let refusal = precondition(state, key) { return refusal }
      _ = state.delete(key)
      return OriginResponse(status: 204, body: [])
    default: return .text(405, "method not allowed")
    }
  }
}
