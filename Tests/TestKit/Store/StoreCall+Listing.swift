// S3's lists.
extension StoreCall {
  private func text(_ key: String) -> String {
    request.query["encoding-type"] == "url" ? StoreText.percentEncoded(key) : key
  }

  private var prefix: String { request.query["prefix"] ?? "" }

  private func most(_ state: StoreState, _ name: String) -> Int {
    min(request.query[name].flatMap { Int($0) } ?? 1000, state.options.pageSize)
  }

  /// The keys of the bucket that begin with the prefix, in the order of their bytes.
  private func keys(_ keys: some Sequence<String>) -> [String] {
    let bucket = request.bucket + "/"
    return keys.filter { $0.hasPrefix(bucket) }.map { String($0.dropFirst(bucket.count)) }
      .filter { $0.utf8.starts(with: prefix.utf8) }
      .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  private var common: String {
    StoreXML.element("Name", request.bucket) + StoreXML.element("Prefix", text(prefix))
      + StoreXML.element("EncodingType", request.query["encoding-type"])
  }

  /// Of objects, version 2. The token of a page is the last key of the one before.
  func listObjects(_ state: StoreState) -> OriginResponse {
    let most = most(state, "max-keys")
    let after = request.query["continuation-token"] ?? request.query["start-after"] ?? request.query["marker"] ?? ""
    let delimiter = request.query["delimiter"] ?? ""
    var entries: [(key: String, isPrefix: Bool)] = []
    for key in keys(state.objects.keys) {
      let rest = String(key.dropFirst(prefix.count))
      if !delimiter.isEmpty, rest.contains(delimiter) {
        let folder =
          prefix + rest.split(separator: delimiter, maxSplits: 1, omittingEmptySubsequences: false)[0] + delimiter
        if entries.last?.key != folder { entries.append((folder, true)) }
      } else {
        entries.append((key, false))
      }
    }
    entries.removeAll { !after.utf8.lexicographicallyPrecedes($0.key.utf8) }
    let page = entries.prefix(most)
    var inner = common + StoreXML.element("KeyCount", "\(page.count)") + StoreXML.element("MaxKeys", "\(most)")
    inner += StoreXML.element("Delimiter", request.query["delimiter"])
    inner += StoreXML.element("IsTruncated", "\(page.count < entries.count)")
    if page.count < entries.count { inner += StoreXML.element("NextContinuationToken", page.last?.key) }
    for entry in page {
      guard !entry.isPrefix, let object = state.object("\(request.bucket)/\(entry.key)") else {
        inner += "<CommonPrefixes>\(StoreXML.element("Prefix", text(entry.key)))</CommonPrefixes>"
        continue
      }
      inner += "<Contents>\(StoreXML.element("Key", text(entry.key)))\(details(of: object))</Contents>"
    }
    return StoreXML.document("ListBucketResult", inner)
  }

  private func details(of object: StoreObject) -> String {
    StoreXML.element("LastModified", StoreText.isoDate(object.modified)) + StoreXML.element("ETag", object.etag)
      + StoreXML.element("Size", "\(object.size)")
      + StoreXML.element("StorageClass", object.headers["x-amz-storage-class"] ?? "STANDARD")
  }

  /// Of versions and delete markers, the newest of a key first.
  func listVersions(_ state: StoreState) -> OriginResponse {
    let most = most(state, "max-keys")
    var entries: [(key: String, version: StoreState.Version, isLatest: Bool)] = []
    for key in keys(state.versions.keys) {
      for (index, version) in (state.versions["\(request.bucket)/\(key)"] ?? []).reversed().enumerated() {
        entries.append((key, version, index == 0))
      }
    }
    if let marker = request.query["key-marker"] {
      let version = request.query["version-id-marker"]
      if let last = entries.lastIndex(where: { $0.key == marker && (version == nil || $0.version.id == version) }) {
        entries.removeFirst(last + 1)
      } else {
        entries.removeAll { !marker.utf8.lexicographicallyPrecedes($0.key.utf8) }
      }
    }
    let page = entries.prefix(most)
    var inner = common + StoreXML.element("MaxKeys", "\(most)")
    inner += StoreXML.element("IsTruncated", "\(page.count < entries.count)")
    if page.count < entries.count {
      inner += StoreXML.element("NextKeyMarker", page.last.map { text($0.key) })
      inner += StoreXML.element("NextVersionIdMarker", page.last?.version.id)
    }
    for entry in page {
      let name = entry.version.object == nil ? "DeleteMarker" : "Version"
      var element = StoreXML.element("Key", text(entry.key)) + StoreXML.element("VersionId", entry.version.id)
      element += StoreXML.element("IsLatest", "\(entry.isLatest)")
      element += entry.version.object.map(details) ?? StoreXML.element("LastModified", StoreText.isoDate(0))
      inner += "<\(name)>\(element)</\(name)>"
    }
    return StoreXML.document("ListVersionsResult", inner)
  }

  /// Of open uploads, by key and then by age.
  func listUploads(_ state: StoreState) -> OriginResponse {
    let most = most(state, "max-uploads")
    let bucket = request.bucket + "/"
    var uploads = state.uploads.values.filter { $0.key.hasPrefix(bucket + prefix) }
      .sorted { $0.key == $1.key ? $0.ordinal < $1.ordinal : $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    if let marker = request.query["key-marker"], !marker.isEmpty {
      let key = bucket + marker
      if let id = request.query["upload-id-marker"], let last = uploads.firstIndex(where: { $0.id == id }) {
        uploads.removeFirst(last + 1)
      } else {
        uploads.removeAll { !key.utf8.lexicographicallyPrecedes($0.key.utf8) }
      }
    }
    let page = uploads.prefix(most)
    var inner = StoreXML.element("Bucket", request.bucket) + StoreXML.element("Prefix", text(prefix))
    inner +=
      StoreXML.element("MaxUploads", "\(most)") + StoreXML.element("EncodingType", request.query["encoding-type"])
    inner += StoreXML.element("IsTruncated", "\(page.count < uploads.count)")
    if page.count < uploads.count, let last = page.last {
      inner += StoreXML.element("NextKeyMarker", text(String(last.key.dropFirst(bucket.count))))
      inner += StoreXML.element("NextUploadIdMarker", last.id)
    }
    for upload in page {
      let key = String(upload.key.dropFirst(bucket.count))
      var element = StoreXML.element("Key", text(key)) + StoreXML.element("UploadId", upload.id)
      element += StoreXML.element("StorageClass", upload.headers["x-amz-storage-class"] ?? "STANDARD")
      element += StoreXML.element("Initiated", StoreText.isoDate(upload.created + faults.clockSkew))
      inner += "<Upload>\(element)</Upload>"
    }
    return StoreXML.document("ListMultipartUploadsResult", inner)
  }

  func listBuckets(_ state: StoreState) -> OriginResponse {
    let present = state.objects.keys.map { String($0.prefix { $0 != "/" }) }.filter { $0 != "put" && $0 != "tus" }
    let buckets = (state.options.buckets ?? Set(present)).sorted().map {
      "<Bucket>\(StoreXML.element("Name", $0))\(StoreXML.element("CreationDate", StoreText.isoDate(0)))</Bucket>"
    }
    return StoreXML.document("ListAllMyBucketsResult", "<Buckets>\(buckets.joined())</Buckets>")
  }
}
