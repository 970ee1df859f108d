import ReelhaulDigest

// tus 1.0.0 under /tus.
extension StoreCall {
  func answerTus(_ state: inout StoreState) -> OriginResponse {
    var response = tusAnswer(&state)
    response["Tus-Resumable"] = "1.0.0"
    response["Cache-Control"] = "no-store"
    return response
  }

  private func tusAnswer(_ state: inout StoreState) -> OriginResponse {
    let options = state.options
    let maxSize = faults.tusMaxSize ?? options.tusMaxSize
    if request.operation == .tusOptions {
      var response = OriginResponse(status: 204, body: [])
      response["Tus-Version"] = "1.0.0"
      response["Tus-Extension"] = options.tusExtensions.joined(separator: ",")
      response["Tus-Checksum-Algorithm"] = options.tusChecksums.map(\.rawValue).joined(separator: ",")
      response["Tus-Max-Size"] = maxSize.map { "\($0)" }
      return response
    }
    let id = String(request.key.dropFirst(4))
    if request.operation == .tusGet {
      guard let object = state.object(request.key) else { return .text(404, "not found") }
      return answer(with: object)
    }
    guard request["tus-resumable"] == "1.0.0" else {
      var response = OriginResponse.text(412, "the version of tus is not supported")
      response["Tus-Version"] = "1.0.0"
      return response
    }
    switch request.operation {
    case .tusCreate: return tusCreate(&state, maxSize: maxSize)
    case .tusHead: return tusHead(&state, id)
    case .tusPatch: return tusPatch(&state, id)
    case .tusDelete:
      guard options.tusExtensions.contains("termination") else { return .text(405, "no termination") }
      guard state.uploads.removeValue(forKey: id) != nil || state.object(request.key) != nil else {
        return .text(404, "not found")
      }
      _ = state.delete(request.key)
      return OriginResponse(status: 204, body: [])
    default: return .text(405, "method not allowed")
    }
  }

  private func tusCreate(_ state: inout StoreState, maxSize: Int64?) -> OriginResponse {
    let concat = request["upload-concat"]
    var final: [StorePiece]?
    if let concat, concat.hasPrefix("final;") {
      final = []
      for url in concat.dropFirst(6).split(separator: " ") {
        let id = url.split(separator: "/").last.map(String.init) ?? ""
        guard let part = state.uploads[id], part.isPartial else { return .text(404, "no such part: \(url)") }
        guard part.length == part.size else { return .text(400, "the part is not complete: \(url)") }
        final? += part.pieces
      }
    }
    let length = request["upload-length"].flatMap { Int64($0) }
    guard final != nil || length != nil || request["upload-defer-length"] == "1" else {
      return .text(400, "Upload-Length is missing")
    }
    if let maxSize, let length, length > maxSize { return .text(413, "larger than Tus-Max-Size") }
    var metadata: [String: String] = [:]
    for pair in (request["upload-metadata"] ?? "").split(separator: ",") {
      let words = pair.split(separator: " ")
      guard let name = words.first else { return .text(400, "Upload-Metadata is malformed") }
      guard let value = words.count > 1 ? StoreText.base64(String(words[1])) : [] else {
        return .text(400, "Upload-Metadata is malformed")
      }
      metadata[String(name)] = String(decoding: value, as: UTF8.self)
    }
    var upload = state.open(nil)
    upload.metadata = metadata
    upload.isPartial = concat == "partial"
    upload.length = length
    if let final {
      upload.length = final.reduce(0) { $0 + $1.size }
      upload.parts = Dictionary(uniqueKeysWithValues: final.enumerated().map { ($0.offset + 1, $0.element) })
    } else if body.size > 0 {
      guard request["content-type"] == "application/offset+octet-stream" else { return .text(415, "wrong type") }
      if let refusal = tusChecksum(state.options) { return refusal }
      guard body.size <= length ?? .max else { return .text(413, "longer than Upload-Length") }
      upload.parts[1] = body
      upload.fall(by: faults.offsetFallsBy)
    }
    state.uploads[upload.id] = upload
    finish(upload, &state)
    var response = OriginResponse.text(201, "")
    response["Location"] = "http://\(request["host"] ?? "127.0.0.1")/tus/\(upload.id)"
    if body.size > 0 { response["Upload-Offset"] = "\(upload.size)" }
    response["Upload-Expires"] = expires(state.options, upload.created)
    return response
  }

  private func tusHead(_ state: inout StoreState, _ id: String) -> OriginResponse {
    if let object = state.object("tus/\(id)") {
      var response = OriginResponse.text(200, "")
      response["Upload-Offset"] = "\(object.size)"
      response["Upload-Length"] = "\(object.size)"
      return response
    }
    state.uploads[id]?.fall(by: faults.offsetFallsBy)
    guard let upload = state.uploads[id] else { return .text(404, "not found") }
    var response = OriginResponse.text(200, "")
    response["Upload-Offset"] = "\(upload.size)"
    response["Upload-Length"] = upload.length.map { "\($0)" }
    if upload.length == nil { response["Upload-Defer-Length"] = "1" }
    if upload.isPartial { response["Upload-Concat"] = "partial" }
    if !upload.metadata.isEmpty {
      response["Upload-Metadata"] = upload.metadata.sorted { $0.key < $1.key }
        .map { "\($0.key) \(Base64.encode(Array($0.value.utf8)))" }.joined(separator: ",")
    }
    response["Upload-Expires"] = expires(state.options, upload.created)
    return response
  }

  private func tusPatch(_ state: inout StoreState, _ id: String) -> OriginResponse {
    if state.object("tus/\(id)") != nil { return .text(403, "the upload is complete") }
    guard var upload = state.uploads[id] else { return .text(404, "not found") }
    guard request["content-type"] == "application/offset+octet-stream" else { return .text(415, "wrong type") }
    guard request["upload-offset"] == "\(upload.size)" else { return .text(409, "the offset is \(upload.size)") }
    if upload.length == nil { upload.length = request["upload-length"].flatMap { Int64($0) } }
    guard upload.size + body.size <= upload.length ?? .max else { return .text(413, "longer than Upload-Length") }
    if let refusal = tusChecksum(state.options) { return refusal }
    if body.size > 0, !faults.dropsPart {
      let kept = faults.damaged([body])
      for piece in kept where piece.size > 0 { upload.parts[upload.parts.count + 1] = piece }
    }
    upload.fall(by: faults.offsetFallsBy)
    state.uploads[id] = upload
    finish(upload, &state)
    var response = OriginResponse(status: 204, body: [])
    response["Upload-Offset"] = "\(upload.size)"
    response["Upload-Expires"] = expires(state.options, upload.created)
    return response
  }

  /// Whether `Upload-Checksum` fits; else the answer.
  private func tusChecksum(_ options: StoreOptions) -> OriginResponse? {
    guard let value = request["upload-checksum"] else { return nil }
    let words = value.split(separator: " ").map(String.init)
    guard words.count == 2, let kind = StoreChecksum(rawValue: words[0]), options.tusChecksums.contains(kind) else {
      return .text(400, "the algorithm is not supported")
    }
    return StoreText.base64(words[1]) == body.checksums[kind] ? nil : .text(460, "Checksum Mismatch")
  }

  /// Makes an object of an upload that has all its bytes.
  private func finish(_ upload: StoreUpload, _ state: inout StoreState) {
    guard upload.length == upload.size, !upload.isPartial else { return }
    var object = StoreObject(pieces: upload.pieces)
    object.metadata = upload.metadata
    if faults.losesObject { return }
    state.uploads[upload.id] = nil
    _ = state.put(upload.key, object)
  }

  private func expires(_ options: StoreOptions, _ created: Int) -> String? {
    guard options.tusExtensions.contains("expiration") else { return nil }
    return options.tusExpiresAfter.map { StoreText.date(created + $0) }
  }
}

extension StoreUpload {
  fileprivate mutating func fall(by count: Int64) {
    if count > 0 { truncate(to: size - count) }
  }
}
