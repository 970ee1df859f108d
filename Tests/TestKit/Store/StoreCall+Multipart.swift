import ReelhaulDigest

// S3's multipart uploads.
extension StoreCall {
  private static let noUpload = StoreXML.error(404, "NoSuchUpload", "The specified upload does not exist.")
  private static let invalidPart = StoreXML.error(
    400, "InvalidPart", "One or more of the specified parts could not be found.")

  func createUpload(_ state: inout StoreState) -> OriginResponse {
    if state.options.hasConditionAtCreate, let refusal = precondition(state, request.key) { return refusal }
    var upload = state.open(request.key)
    upload.headers = request.kept
    upload.metadata = request.fields("x-amz-meta-")
    upload.checksum = request["x-amz-checksum-algorithm"].flatMap { StoreChecksum(rawValue: $0.lowercased()) }
    upload.checksumType =
      upload.checksum == nil
      ? nil
      : request["x-amz-checksum-type"] ?? (upload.checksum == .crc64nvme ? "FULL_OBJECT" : "COMPOSITE")
    if upload.checksumType == "FULL_OBJECT", upload.checksum?.isCRC == false {
      state.uploads[upload.id] = nil
      return StoreXML.error(400, "InvalidRequest", "The FULL_OBJECT checksum type needs a CRC.")
    }
    state.uploads[upload.id] = upload
    var response = StoreXML.document(
      "InitiateMultipartUploadResult",
      StoreXML.element("Bucket", request.bucket) + StoreXML.element("Key", request.objectKey)
        + StoreXML.element("UploadId", upload.id))
    response["x-amz-checksum-algorithm"] = upload.checksum?.rawValue.uppercased()
    response["x-amz-checksum-type"] = upload.checksumType
    return response
  }

  /// The open upload that the request names, if it is for the same key.
  private func upload(_ state: StoreState) -> StoreUpload? {
    request.uploadID.flatMap { state.uploads[$0] }.flatMap { $0.key == request.key ? $0 : nil }
  }

  func uploadPart(_ state: inout StoreState) -> OriginResponse {
    guard request.contentLength != nil else {
      return StoreXML.error(411, "MissingContentLength", "You must provide the Content-Length HTTP header.")
    }
    var response = OriginResponse.text(200, "")
    if let refusal = keepPart(body, &state) { return refusal }
    response["ETag"] = StoreObject(pieces: [body]).etag
    for (kind, sum) in body.checksums where kind != .md5 { response[kind.header] = Base64.encode(sum) }
    return response
  }

  /// Keeps a part as far as the faults let it.
  private func keepPart(_ piece: StorePiece, _ state: inout StoreState) -> OriginResponse? {
    guard let upload = upload(state) else { return Self.noUpload }
    guard let number = request.partNumber, (1...10_000).contains(number) else {
      return StoreXML.error(400, "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive")
    }
    guard !faults.dropsPart else { return nil }
    // The tag is that of what was sent.
    var kept = faults.damaged([piece])[0]
    kept.md5 = piece.md5
    kept.checksums = piece.checksums
    state.uploads[upload.id]?.parts[number] = kept
    return nil
  }

  func uploadPartCopy(_ state: inout StoreState) -> OriginResponse {
    switch copySource(state) {
    case .failure(let refusal): return refusal.response
    case .success(let source):
      var range = 0..<source.size
      if let value = request["x-amz-copy-source-range"] {
        guard let asked = OriginRequest(head: "GET / HTTP/1.1\r\nrange: \(value)")?.range, let first = asked.first,
          let last = asked.last, first <= last, last < source.size
        else { return StoreXML.error(400, "InvalidArgument", "The x-amz-copy-source-range value is not valid") }
        range = first..<last + 1
      }
      guard let parts = source.part(range) else { return .text(500, "the store has kept digests only") }
      // A part is one piece; several of the source become one if their bytes are there.
      let whole = parts.count == 1 ? parts[0] : StoreObject(pieces: parts).bytes.map { StorePiece(bytes: $0) }
      guard let whole else { return .text(500, "the store has kept digests only") }
      if let refusal = keepPart(whole, &state) { return refusal }
      return StoreXML.document("CopyPartResult", StoreXML.element("ETag", StoreObject(pieces: [whole]).etag))
    }
  }

  func completeUpload(_ state: inout StoreState) -> OriginResponse {
    guard let upload = upload(state) else { return Self.noUpload }
    let listed = StoreXML.contents(of: "Part", in: bodyText)
    guard !listed.isEmpty, !faults.refusesChecksumsAtEnd || !bodyText.contains("<Checksum") else {
      return StoreXML.error(400, "MalformedXML", "The XML you provided was not well-formed")
    }
    var pieces: [StorePiece] = []
    var last = 0
    for part in listed {
      guard let number = StoreXML.text(of: "PartNumber", in: part).flatMap({ Int($0) }), number > last else {
        return StoreXML.error(400, "InvalidPartOrder", "The list of parts was not in ascending order.")
      }
      last = number
      guard let piece = upload.parts[number], let etag = StoreXML.text(of: "ETag", in: part),
        etag.lowercased().filter({ $0 != "\"" }) == StoreText.hex(piece.tag)
      else { return Self.invalidPart }
      for kind in StoreChecksum.allCases {
        guard let sum = StoreXML.text(of: kind.element, in: part) else { continue }
        guard StoreText.base64(sum) == piece.checksums[kind] else { return Self.invalidPart }
      }
      pieces.append(piece)
    }
    if let small = pieces.dropLast().first(where: { $0.size < state.options.minimumPartSize }) {
      return StoreXML.error(
        400, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size",
        more: StoreXML.element("ProposedSize", "\(small.size)"))
    }
    if state.options.wantsEqualParts, pieces.dropLast().contains(where: { $0.size != pieces[0].size }) {
      return StoreXML.error(400, "InvalidPart", "All non-trailing parts must have the same length.")
    }
    if let refusal = precondition(state, request.key) { return refusal }
    var object = StoreObject(pieces: pieces)
    object.etag = "\"\(StoreText.hex(digest(.md5, of: pieces.flatMap(\.tag))))-\(pieces.count)\""
    object.headers = upload.headers
    object.metadata = upload.metadata
    if let size = request["x-amz-mp-object-size"].flatMap({ Int64($0) }), size != object.size {
      return StoreXML.error(400, "InvalidRequest", "The provided 'x-amz-mp-object-size' header does not match.")
    }
    if let refusal = addChecksum(of: upload, to: &object) { return refusal }
    state.uploads[upload.id] = nil
    let version = store(object, in: &state)
    var inner = StoreXML.element("Location", "\(origin)/\(request.key)") + StoreXML.element("Bucket", request.bucket)
    inner += StoreXML.element("Key", request.objectKey) + StoreXML.element("ETag", object.etag)
    for (kind, sum) in object.checksums { inner += StoreXML.element(kind.element, sum) }
    inner += StoreXML.element("ChecksumType", object.checksumType)
    var response = StoreXML.document("CompleteMultipartUploadResult", inner)
    response["x-amz-version-id"] = version
    return response
  }

  /// The checksum of the whole from those of the parts, compared with the one that the request gives.
  private func addChecksum(of upload: StoreUpload, to object: inout StoreObject) -> OriginResponse? {
    guard let kind = upload.checksum else { return nil }
    let sums = object.pieces.compactMap { piece in
      piece.checksums[kind] ?? piece.bytes(0..<piece.size).map { kind.bytes(of: [$0]) }
    }
    guard sums.count == object.pieces.count else { return nil }
    object.checksumType = upload.checksumType
    if upload.checksumType == "FULL_OBJECT" {
      let parts = zip(sums, object.pieces).map { ($0, $1.size) }
      object.checksums[kind] = kind.combined(parts).map { Base64.encode($0) }
    } else {
      object.checksums[kind] = "\(kind.of([sums.flatMap { $0 }]))-\(sums.count)"
    }
    guard let given = request[kind.header], given != object.checksums[kind] else { return nil }
    return StoreXML.error(
      400, "BadDigest", "The \(kind.rawValue) you specified did not match the calculated checksum.")
  }

  func abortUpload(_ state: inout StoreState) -> OriginResponse {
    guard let upload = upload(state) else { return Self.noUpload }
    state.uploads[upload.id] = nil
    return OriginResponse(status: 204, body: [])
  }

  func listParts(_ state: StoreState) -> OriginResponse {
    guard let upload = upload(state) else { return Self.noUpload }
    let after = request.query["part-number-marker"].flatMap { Int($0) } ?? 0
    let most = min(request.query["max-parts"].flatMap { Int($0) } ?? 1000, state.options.pageSize)
    var parts = upload.parts.sorted { $0.key < $1.key }
    for fault in faults {
      if case .listPartsMissing(let count) = fault { parts.removeLast(min(count, parts.count)) }
      if case .listPartsExtra = fault {
        parts.append(((parts.last?.key ?? 0) + 1, StorePiece(bytes: Array("a part that nobody has sent".utf8))))
      }
    }
    parts.removeAll { $0.key <= after }
    let page = parts.prefix(most)
    var inner = StoreXML.element("Bucket", request.bucket) + StoreXML.element("Key", request.objectKey)
    inner += StoreXML.element("UploadId", upload.id) + StoreXML.element("PartNumberMarker", "\(after)")
    inner += StoreXML.element("MaxParts", "\(most)") + StoreXML.element("IsTruncated", "\(page.count < parts.count)")
    if page.count < parts.count { inner += StoreXML.element("NextPartNumberMarker", page.last.map { "\($0.key)" }) }
    inner += StoreXML.element("ChecksumAlgorithm", upload.checksum?.rawValue.uppercased())
    inner += StoreXML.element("ChecksumType", upload.checksumType)
    for (number, piece) in page {
      var part = StoreXML.element("PartNumber", "\(number)") + StoreXML.element("Size", "\(piece.size)")
      part += StoreXML.element("ETag", "\"\(StoreText.hex(piece.tag))\"")
      part += StoreXML.element("LastModified", StoreText.isoDate(upload.created))
      for (kind, sum) in piece.checksums where kind != .md5 {
        part += StoreXML.element(kind.element, Base64.encode(sum))
      }
      inner += "<Part>\(part)</Part>"
    }
    return StoreXML.document("ListPartsResult", inner)
  }
}
