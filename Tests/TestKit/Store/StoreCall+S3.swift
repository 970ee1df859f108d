import ReelhaulDigest

// S3, path style: objects.
extension StoreCall {
  func answerS3(_ state: inout StoreState) -> OriginResponse {
    var response = badBody() ?? badDigest() ?? noBucket(state) ?? s3Answer(&state)
    response["x-amz-request-id"] = "REQUEST\(state.next())"
    return response
  }

  private func s3Answer(_ state: inout StoreState) -> OriginResponse {
    switch request.operation {
    case .copyObject where faults.ignoresCopySource, .putObject: putObject(&state)
    case .copyObject: copyObject(&state)
    case .getObject, .headObject: getObject(state)
    case .deleteObject: deleteObject(&state)
    case .deleteObjects: deleteObjects(&state)
    case .createUpload: createUpload(&state)
    case .uploadPartCopy where faults.ignoresCopySource, .uploadPart: uploadPart(&state)
    case .uploadPartCopy: uploadPartCopy(&state)
    case .listParts: listParts(state)
    case .completeUpload: completeUpload(&state)
    case .abortUpload: abortUpload(&state)
    case .listUploads: listUploads(state)
    case .listObjects: listObjects(state)
    case .listVersions: listVersions(state)
    case .createBucket: createBucket(&state)
    case .headBucket: .text(200, "")
    case .deleteBucket: deleteBucket(&state)
    case .listBuckets: listBuckets(state)
    default: StoreXML.error(405, "MethodNotAllowed", "The method is not allowed against this resource.")
    }
  }

  /// Whether the body is framed in a way that the store does not know, or is not the signed one.
  private func badBody() -> OriginResponse? {
    let hash = request["x-amz-content-sha256"]
    let isFramed = hash?.hasPrefix("STREAMING-") == true || request["content-encoding"]?.contains("aws-chunked") == true
    if isFramed {
      return faults.keepsFraming ? nil : StoreXML.error(501, "NotImplemented", "aws-chunked is not implemented.")
    }
    // An anonymous request and a presigned URL need none.
    guard request["authorization"] != nil else { return nil }
    guard let hash else {
      return StoreXML.error(400, "InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
    }
    guard hash == "UNSIGNED-PAYLOAD" || hash == StoreText.hex(body.sha256) else {
      return StoreXML.error(
        400, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed."
      )
    }
    return nil
  }

  private func noBucket(_ state: StoreState) -> OriginResponse? {
    guard let buckets = state.options.buckets, !request.bucket.isEmpty, request.operation != .createBucket,
      !buckets.contains(request.bucket)
    else { return nil }
    return StoreXML.error(404, "NoSuchBucket", "The specified bucket does not exist")
  }

  private func putObject(_ state: inout StoreState) -> OriginResponse {
    if let refusal = precondition(state, request.key) { return refusal }
    if request.contentLength == nil {
      return StoreXML.error(411, "MissingContentLength", "You must provide the Content-Length HTTP header.")
    }
    return keep(StoreObject(pieces: [body]), body.checksums, in: &state)
  }

  /// Keeps an object that is made of one body.
  private func keep(
    _ object: StoreObject, _ sums: [StoreChecksum: [UInt8]], in state: inout StoreState
  ) -> OriginResponse {
    var object = object
    object.headers = request.kept
    object.metadata = request.fields("x-amz-meta-")
    object.checksums = sums.mapValues { Base64.encode($0) }
    object.checksumType = sums.isEmpty ? nil : "FULL_OBJECT"
    return answer(putting: object, in: &state)
  }

  private func answer(putting object: StoreObject, in state: inout StoreState) -> OriginResponse {
    var response = OriginResponse.text(200, "")
    response["ETag"] = object.etag
    for (kind, sum) in object.checksums { response[kind.header] = sum }
    response["x-amz-checksum-type"] = object.checksumType
    response["x-amz-version-id"] = store(object, in: &state)
    return response
  }

  /// Keeps `object`, as far as the faults let it. Returns its version id.
  func store(_ object: StoreObject, in state: inout StoreState) -> String? {
    if faults.losesObject { return nil }
    var object = object
    object.pieces = faults.damaged(object.pieces)
    return state.put(request.key, object).versionID
  }

  /// What `x-amz-copy-source` names, or the answer.
  func copySource(_ state: StoreState) -> Result<StoreObject, StoreRefusal> {
    let parts = (request["x-amz-copy-source"] ?? "").split(separator: "?", maxSplits: 1)
    var key = StoreText.percentDecoded(parts.first ?? "")
    if key.hasPrefix("/") { key.removeFirst() }
    let version = parts.count > 1 ? StoreText.query(parts[1])["versionId"] : nil
    guard let object = state.object(key, version: version) else {
      return .failure(StoreRefusal(StoreXML.error(404, "NoSuchKey", "The specified key does not exist.")))
    }
    if let match = request["x-amz-copy-source-if-match"], match != object.etag {
      return .failure(
        StoreRefusal(StoreXML.error(412, "PreconditionFailed", "At least one of the preconditions did not hold")))
    }
    return .success(object)
  }

  private func copyObject(_ state: inout StoreState) -> OriginResponse {
    if let refusal = precondition(state, request.key) { return refusal }
    switch copySource(state) {
    case .failure(let refusal): return refusal.response
    case .success(let source):
      // A copied object has one body, and so the tag of one.
      var object = source
      if request["x-amz-metadata-directive"] == "REPLACE" {
        object.headers = request.kept
        object.metadata = request.fields("x-amz-meta-")
      }
      let version = store(object, in: &state)
      var response = StoreXML.document("CopyObjectResult", StoreXML.element("ETag", object.etag))
      response["x-amz-version-id"] = version
      return response
    }
  }

  private func getObject(_ state: StoreState) -> OriginResponse {
    guard let object = state.object(request.key, version: request.query["versionId"]) else {
      return StoreXML.error(404, "NoSuchKey", "The specified key does not exist.")
    }
    var response = answer(with: object)
    for (name, value) in object.metadata { response["x-amz-meta-\(name)"] = value }
    response["x-amz-version-id"] = object.versionID
    if request["x-amz-checksum-mode"] == "ENABLED", response.status == 200 {
      for (kind, sum) in object.checksums { response[kind.header] = sum }
      response["x-amz-checksum-type"] = object.checksumType
    }
    return response
  }

  private func deleteObject(_ state: inout StoreState) -> OriginResponse {
    if request["if-match"] != nil, state.object(request.key) != nil, let refusal = precondition(state, request.key) {
      return refusal
    }
    let deleted = state.delete(request.key, version: request.query["versionId"])
    var response = OriginResponse(status: 204, body: [])
    response["x-amz-version-id"] = deleted.version
    if deleted.isMarker { response["x-amz-delete-marker"] = "true" }
    return response
  }

  private func deleteObjects(_ state: inout StoreState) -> OriginResponse {
    guard request["content-md5"] != nil || !request.checksums.isEmpty else {
      return StoreXML.error(400, "InvalidRequest", "Missing required header for this request: Content-MD5")
    }
    let objects = StoreXML.contents(of: "Object", in: bodyText)
    guard !objects.isEmpty, objects.count <= 1000 else {
      return StoreXML.error(400, "MalformedXML", "The XML you provided was not well-formed")
    }
    let isQuiet = StoreXML.text(of: "Quiet", in: bodyText) == "true"
    var results = ""
    for object in objects {
      guard let key = StoreXML.text(of: "Key", in: object) else { continue }
      let version = StoreXML.text(of: "VersionId", in: object)
      if let etag = StoreXML.text(of: "ETag", in: object), let present = state.object("\(request.bucket)/\(key)"),
        present.etag != etag
      {
        let error = StoreXML.element("Key", key) + StoreXML.element("Code", "PreconditionFailed")
        results += "<Error>\(error)</Error>"
        continue
      }
      let deleted = state.delete("\(request.bucket)/\(key)", version: version)
      if isQuiet { continue }
      let marker = deleted.isMarker ? StoreXML.element("DeleteMarker", "true") : ""
      results += "<Deleted>\(StoreXML.element("Key", key))\(StoreXML.element("VersionId", version))\(marker)</Deleted>"
    }
    return StoreXML.document("DeleteResult", results)
  }

  private func createBucket(_ state: inout StoreState) -> OriginResponse {
    state.options.buckets?.insert(request.bucket)
    var response = OriginResponse.text(200, "")
    response["Location"] = "/\(request.bucket)"
    return response
  }

  private func deleteBucket(_ state: inout StoreState) -> OriginResponse {
    guard !state.objects.keys.contains(where: { $0.hasPrefix("\(request.bucket)/") }) else {
      return StoreXML.error(409, "BucketNotEmpty", "The bucket you tried to delete is not empty")
    }
    state.options.buckets?.remove(request.bucket)
    return OriginResponse(status: 204, body: [])
  }
}

/// An answer that says why not.
struct StoreRefusal: Error {
  let response: OriginResponse

  init(_ response: OriginResponse) {
    self.response = response
  }
}
