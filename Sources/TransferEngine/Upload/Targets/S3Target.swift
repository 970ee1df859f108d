import ReelhaulCodec
import ReelhaulCurl
import ReelhaulDigest
import ReelhaulMessages
import ReelhaulSystem
import TaskCore

/// An object of a store that speaks S3: one PUT for a small file, and a multipart upload for any other. What the store
/// lists of an upload is the truth; each listed part is compared with the bytes of the source.
struct S3Target: UploadTarget {
  let client: S3Client
  let key: String
  let parameters: UploadParameters
  /// Whether a source at `s3://` is in the same store, with the same credential. Then the store copies by itself.
  var sharesSource = false
  /// Whether the store has refused to copy by itself.
  let hasRefusedCopy = Lock(false)

  static let standardPart: Int64 = 8 << 20
  private static let mostParts: Int64 = 10_000
  private static let parallel = 16
  /// Bytes of parts that one upload holds in memory: a part is held whole while it is sent.
  private static let mostHeld: Int64 = 256 << 20
  private let hasSent = Lock(false)
  /// Whether the one request that makes the object may have been done before, without an answer to it.
  private let isInDoubt = Lock(false)

  /// Nil for an object that one PUT makes.
  struct Session {
    var uploadID: String?
    /// Whether the store takes checksums of parts.
    var hasChecksums = true
    /// Whether it makes one checksum of them, that of the whole object.
    var isWhole = false
    /// Whether the store copies the bytes by itself.
    var copies = false
  }

  var location: String { client.place(key) }

  func plan(size: Int64) async throws -> UploadPlan {
    let largest = Self.mostParts * UploadParameters.partSizes.upperBound
    guard size <= largest else { throw TaskFailure.tooLarge(size, for: location, most: largest) }
    var part = parameters.partSize ?? Self.standardPart
    // The number of parts is limited. All are of one size, as some stores require.
    let least = (size + Self.mostParts - 1) / Self.mostParts
    if part < least { part = ((least - 1) >> 20 + 1) << 20 }
    guard size > part else { return UploadPlan(segmentSize: max(1, size), parallel: 1, publishesAtOnce: true) }
    return UploadPlan(segmentSize: part, parallel: max(1, min(Self.parallel, Int(Self.mostHeld / part))))
  }

  /// What a store says of the key.
  enum Look {
    case absent
    /// Nobody may read the object with this credential. Without the right to list the bucket, a missing one looks so too.
    case forbidden
    case found(UploadedObject)
  }

  func look(_ upload: UploadOrder) async throws -> UploadedObject? { try await look() }

  func look() async throws -> UploadedObject? {
    if case .found(let object) = try await head() { object } else { nil }
  }

  func head() async throws -> Look {
    let call = S3Client.Call(
      method: .head, key: key, headers: [HeaderField(name: "x-amz-checksum-mode", value: "ENABLED")])
    let head: CurlHead
    do {
      head = try await client.send(call).head
    } catch let error as S3Error {
      switch error.status {
      case 404: return .absent
      case 403: return .forbidden
      default: throw client.failure(error, key)
      }
    }
    var object = UploadedObject(
      size: head["content-length"].flatMap { Int64($0) }, etag: head["etag"], versionID: head["x-amz-version-id"])
    if let task = head["x-amz-meta-reelhaul-task"].flatMap({ UniqueID($0) }) {
      object.owner = .init(task: task, version: head["x-amz-meta-reelhaul-version"])
    }
    if head["x-amz-checksum-type"] == Self.wholeChecksum.value { object.checksum = head["x-amz-checksum-crc32c"] }
    object.md5 = Self.md5(head)
    return .found(object)
  }

  /// The MD5 of the bytes that the store has, if the entity tag is one. That of an encrypted object may look like one.
  private static func md5(_ head: CurlHead) -> String? {
    guard let etag = head["etag"], S3ETag.looksLikeMD5(etag), !etag.contains("-"),
      head["x-amz-server-side-encryption"]?.hasPrefix("aws:kms") != true,
      head["x-amz-server-side-encryption-customer-algorithm"] == nil
    else { return nil }
    return S3ETag.bare(etag).lowercased()
  }

  func begin(_ upload: UploadOrder) async throws -> [UInt8] {
    let copies = copiesByStore(upload)
    guard !upload.plan.publishesAtOnce else { return Session(copies: copies).json }
    // The newest way first: older stores refuse it.
    var ways = [Session(hasChecksums: false, copies: copies)]
    if !copies, parameters.checksum != UploadParameters.Checksum.none { ways += [Session(), Session(isWhole: true)] }
    while let way = ways.popLast() {
      do {
        return try await create(upload, way).json
      } catch let error as S3Error where [400, 501].contains(error.status) && !error.refreshesCredentials {
        guard !ways.isEmpty else { throw client.failure(error, key) }
      } catch {
        throw client.failure(error, key)
      }
    }
    throw UploadGone()
  }

  func resume(_ upload: UploadOrder, session: [UInt8], source: any UploadSource) async throws -> UploadStanding {
    let session = try Session(session)
    // A run before has asked.
    if !session.copies, copiesByStore(upload) { hasRefusedCopy.withLock { $0 = true } }
    if upload.mayBeThere, var there = try await own(upload), try await proves(&there, upload) {
      there.remark = try await remark(upload)
      return .finished(there)
    }
    guard let uploadID = session.uploadID else { return .open([:]) }
    let listed: [S3PartList.Part]
    do {
      listed = try await parts(of: uploadID)
    } catch let error as S3Error {
      if Self.mayNotList.contains(error.status) { return .untold }
      guard error.losesUpload else { throw failure(error) }
      try await checkDoubt(upload)
      return .gone
    }
    let count = upload.plan.segments(of: upload.size)
    var rest = listed.filter { (1...count).contains($0.number) }.makeIterator()
    var receipts: [Int: UploadReceipt] = [:]
    try await withThrowingTaskGroup(of: UploadReceipt?.self) { group in
      var running = 0
      while true {
        while running < upload.firstParallel, let part = rest.next() {
          running += 1
          group.addTask { try await receipt(of: part, in: upload, session, source) }
        }
        guard let receipt = try await group.next() else { return }
        running -= 1
        if let receipt { receipts[receipt.segment] = receipt }
      }
    }
    return .open(receipts)
  }

  /// Nil for a part that is not proven to have the bytes of the source.
  private func receipt(
    of part: S3PartList.Part, in upload: UploadOrder, _ session: Session, _ source: any UploadSource
  ) async throws -> UploadReceipt? {
    try Task.checkCancellation()
    let segment = part.number - 1
    let range = upload.plan.range(of: segment, size: upload.size)
    guard part.size == Int64(range.count) else { return nil }
    // It was copied of this version only.
    if session.copies { return UploadReceipt(segment: segment, etag: part.etag) }
    let sums = try await client.holding(range, of: source) { bytes in
      try await client.computing { PartSums(bytes, needsMD5: part.crc32c == nil) }
    }
    guard let proof = sums.proof(etag: part.etag, crc32c: part.crc32c) else { return nil }
    return UploadReceipt(segment: segment, etag: part.etag, verified: proof, crc32c: sums.crc)
  }

  func send(_ segment: UploadSegment, of upload: UploadOrder, session: [UInt8]) async throws -> UploadReceipt {
    let session = try Session(session)
    if session.copies { return try await copy(segment, of: upload, session) }
    return try await client.holding(segment.range, of: upload.body.source) { bytes in
      try await put(segment, bytes, of: upload, session)
    }
  }

  private func put(
    _ segment: UploadSegment, _ bytes: ArraySlice<UInt8>, of upload: UploadOrder, _ session: Session
  ) async throws -> UploadReceipt {
    if upload.plan.publishesAtOnce { try await upload.body.source.check() }
    let isPlain = try await client.isPlain()
    let (sums, hash) = try await client.computing {
      (PartSums(bytes, needsMD5: false), isPlain ? Hex.encode(digest(.sha256, of: bytes)) : nil)
    }
    var call = S3Client.Call(method: .put, key: key)
    call.body = { [body = upload.body, isInDoubt] in
      body.holding(bytes) { isInDoubt.withLock { $0 = true } }
    }
    // Where there are no bytes to repeat, libcurl does not tell that it repeats.
    call.isSentOnce = bytes.isEmpty
    call.payloadHash = hash
    if session.hasChecksums, parameters.checksum != UploadParameters.Checksum.none {
      call.headers.append(HeaderField(name: "x-amz-checksum-crc32c", value: sums.crc32c))
    }
    if let uploadID = session.uploadID {
      call.query = ["partNumber": "\(segment.number + 1)", "uploadId": uploadID]
    } else {
      call.headers += objectFields(upload)
      // Before the first try the run has looked.
      let isAgain = hasSent.withLock { sent in
        defer { sent = true }
        return sent
      }
      if isAgain || upload.mayBeThere { try await checkDestination(upload) }
    }
    var head: CurlHead
    do {
      head = session.uploadID == nil ? try await conditionally(upload, call) : try await client.send(call).head
    } catch let error as S3Error {
      if session.uploadID != nil, error.losesUpload {
        try await checkDoubt(upload)
        throw UploadGone()
      }
      if UploadRun.isUntold(error.status) { isInDoubt.withLock { $0 = true } }
      guard error.status == 412 else { throw session.uploadID == nil ? client.failure(error, key) : failure(error) }
      // A 412 may come from this task's own object: of the try before, or of another version.
      guard var there = try await look(), there.owner?.task == upload.task else {
        let isInDoubt = isInDoubt.withLock { $0 }
        try await checkDoubt(upload, isInDoubt: isInDoubt)
        // It was there before. The next run need not doubt it either.
        if !isInDoubt, !upload.mayBeThere { try await upload.publishing(false) }
        throw try await occupied(upload)
      }
      if upload.mayHaveMade(there), try await proves(&there, upload) {
        return UploadReceipt(
          segment: segment.number, etag: there.etag ?? "", verified: there.verified == .none ? nil : there.verified,
          versionID: there.versionID)
      }
      call.headers.append(HeaderField(name: "If-Match", value: there.etag ?? ""))
      do { head = try await client.send(call).head } catch { throw client.failure(error, key) }
    } catch {
      isInDoubt.withLock { $0 = true }
      throw error
    }
    guard let etag = head["etag"] else { throw TaskFailure.badResponse("a part has no ETag", url: location) }
    if session.uploadID == nil { try await proveConditions(upload, call, made: etag) }
    let echoed = head["x-amz-checksum-crc32c"]
    let proof =
      if echoed == nil {
        try await client.computing { PartSums(bytes, needsMD5: true).proof(etag: etag, crc32c: nil) }
      } else {
        sums.proof(etag: etag, crc32c: echoed)
      }
    // A tag that is no MD5 is that of an encrypted part, and proves nothing.
    if proof == nil, echoed != nil || Self.md5(head) != nil { throw damaged }
    return UploadReceipt(
      segment: segment.number, etag: etag, verified: proof, crc32c: sums.crc, versionID: head["x-amz-version-id"])
  }

  func finish(_ upload: UploadOrder, session: [UInt8], receipts: [UploadReceipt]) async throws -> UploadedObject {
    let session = try Session(session)
    var object: UploadedObject?
    if let uploadID = session.uploadID {
      try await checkDestination(upload, beforeJoining: true)
      object = try await complete(upload, uploadID, session, receipts)
    }
    if session.uploadID == nil, let receipt = receipts.first, receipt.verified != nil {
      // The answer to the PUT says all that a HEAD would.
      object = UploadedObject(size: upload.size, etag: receipt.etag, versionID: receipt.versionID)
    }
    if object == nil {
      switch try await head() {
      case .found(var there)
      where (there.owner == nil || upload.mayHaveMade(there)) && !isOf(there, receipts):
        if try await proves(&there, upload) {
          object = there
        } else if there.owner != nil {
          throw damaged
        } else if session.uploadID == nil {
          // One that does not say whose it is: somebody has replaced it at once.
          object = receipts.first.map(Self.taken)
        }
      case .found(let there): object = there
      case .forbidden: object = receipts.first.map { UploadedObject(etag: $0.etag, versionID: $0.versionID) }
      // One that several requests make was not even confirmed.
      case .absent where session.uploadID == nil: object = receipts.first.map(Self.taken)
      case .absent: break
      }
    }
    guard var object else {
      throw TaskFailure.badResponse("the object is not there after its upload", url: location)
    }
    if object.owner != nil, !upload.mayHaveMade(object) {
      throw TaskFailure(
        code: .destinationExists, message: "\(location) was replaced by somebody else as soon as it was uploaded",
        class: .fail)
    }
    object.remark = try await remark(upload, after: object.remark)
    guard object.verified == .none else { return object }
    let kinds = Set(receipts.map(\.verified))
    object.verified =
      kinds == [.crc32c] ? .crc32c : kinds.isSubset(of: [.crc32c, .md5]) ? .md5 : object.size == nil ? .none : .size
    return object
  }

  func abort(session: [UInt8]) async throws {
    guard let uploadID = try Session(session).uploadID else { return }
    do {
      _ = try await client.send(S3Client.Call(method: .delete, key: key, query: ["uploadId": uploadID]))
    } catch let error as S3Error {
      guard error.losesUpload else { throw failure(error) }
    }
  }

  // MARK: Requests

  /// The failure of a request about an open upload. A gateway's 404 says nothing of the upload.
  func failure(_ error: S3Error) -> TaskFailure {
    var failure = client.failure(error, key)
    if error.status == 404, error.code == nil { failure.class = .retry }
    return failure
  }

  private func create(_ upload: UploadOrder, _ way: Session) async throws -> Session {
    var session = way
    var call = S3Client.Call(method: .post, key: key, query: ["uploads": ""], headers: objectFields(upload))
    call.isSentOnce = true
    if way.hasChecksums { call.headers.append(HeaderField(name: "x-amz-checksum-algorithm", value: "CRC32C")) }
    if way.isWhole { call.headers.append(Self.wholeChecksum) }
    let (document, head) = try await client.answer(S3InitiatedUpload.self, call)
    session.uploadID = document.uploadID
    session.isWhole = way.isWhole && head["x-amz-checksum-type"] == Self.wholeChecksum.value
    return session
  }

  func proves(_ there: inout UploadedObject, _ upload: UploadOrder) async throws -> Bool {
    try await proves(&there, upload, crc32c: nil)
  }

  /// What a store tells of an object may be wrong. So one that it does not prove is read.
  ///
  /// - Parameter crc32c: Of the source, if it is known.
  func proves(_ there: inout UploadedObject, _ upload: UploadOrder, crc32c known: UInt32?) async throws -> Bool {
    guard there.size ?? upload.size == upload.size else { return false }
    let isTold = there.checksum != nil || there.md5 != nil && known == nil
    // It was joined of parts that were proven.
    let isJoined = there.owner == upload.owner && !upload.plan.publishesAtOnce
    if !isTold, !upload.isDoubted, isJoined { return true }
    var crc = known ?? 0
    var md5 = DigestState(.md5)
    if known == nil {
      try await upload.body.source.readAll {
        crc = ReelhaulSystem.crc32c($0, continuing: crc)
        md5.update($0)
      }
    }
    if let told = there.checksum, told == S3Checksum.crc32c(crc) {
      there.verified = .crc32c
    } else if known == nil, there.checksum == nil, let told = there.md5, told == Hex.encode(md5.finish()) {
      there.verified = .md5
    } else {
      guard try await crc32c(of: there, size: upload.size) == crc else { return false }
      there.verified = .crc32c
    }
    return true
  }

  /// Reads the object; nil if it is not there any more, or shorter.
  private func crc32c(of object: UploadedObject, size: Int64) async throws -> UInt32? {
    var (crc, offset) = (UInt32(0), Int64(0))
    while offset < size {
      let end = min(size, offset + 4 << 20)
      var call = S3Client.Call(method: .get, key: key)
      call.headers = [HeaderField(name: "Range", value: "bytes=\(offset)-\(end - 1)")]
      if let etag = object.etag { call.headers.append(HeaderField(name: "If-Match", value: etag)) }
      do {
        let body = try await client.send(call).body
        guard Int64(body.count) == end - offset else { return nil }
        crc = body.withUnsafeBytes { ReelhaulSystem.crc32c($0, continuing: crc) }
      } catch let error as S3Error {
        guard [404, 412, 416].contains(error.status) else { throw client.failure(error, key) }
        return nil
      }
      offset = end
    }
    return crc
  }

  /// The object of a confirmed request that made it.
  private static func taken(_ receipt: UploadReceipt) -> UploadedObject {
    UploadedObject(etag: receipt.etag, versionID: receipt.versionID, remark: takenRemark)
  }

  /// Whether it is the one that the store has confirmed, as its only segment.
  private func isOf(_ there: UploadedObject, _ receipts: [UploadReceipt]) -> Bool {
    receipts.count == 1 && receipts.first.map { S3ETag.bare($0.etag) } == there.etag.map(S3ETag.bare)
  }

  static let wholeChecksum = HeaderField(name: "x-amz-checksum-type", value: "FULL_OBJECT")

  /// The object, if this task has made it of this version, or of one that it does not tell.
  func own(_ upload: UploadOrder) async throws -> UploadedObject? {
    guard let there = try await look(), upload.mayHaveMade(there) else { return nil }
    return there
  }

  func parts(of uploadID: String) async throws -> [S3PartList.Part] {
    var parts: [S3PartList.Part] = []
    var marker: Int?
    repeat {
      var query: S3Query = ["uploadId": uploadID]
      if let marker { query.append("part-number-marker", "\(marker)") }
      let page = try await client.document(
        S3PartList.self, S3Client.Call(method: .get, key: key, query: query))
      parts += page.parts
      marker = page.nextMarker
    } while marker != nil && parts.count <= Self.mostParts
    return parts
  }

  /// What the object is made with. A copy of an object of S3 has what its source has, but for what the task says.
  func objectFields(_ upload: UploadOrder) -> [HeaderField] {
    var fields = [
      HeaderField(name: "x-amz-meta-reelhaul-task", value: "\(upload.task)"),
      HeaderField(name: "x-amz-meta-reelhaul-generation", value: "\(upload.generation)"),
      HeaderField(name: "x-amz-meta-reelhaul-version", value: upload.owner.version ?? ""),
    ]
    if let storageClass = parameters.storageClass {
      fields.append(HeaderField(name: "x-amz-storage-class", value: storageClass))
    }
    for (name, value) in parameters.metadata.sorted(by: { $0.key < $1.key }) {
      fields.append(HeaderField(name: "x-amz-meta-\(name)", value: value))
    }
    if let type = parameters.contentType { fields.append(HeaderField(name: "Content-Type", value: type)) }
    let named = Set(fields.map { $0.name.lowercased() })
    var found = upload.body.source.properties.filter { !named.contains($0.name) }
    // Stores refuse more metadata than this.
    if Self.metadataBytes(fields + found) > UploadParameters.metadataLimit { found.removeAll(where: Self.isMetadata) }
    fields += found
    if !fields.contains(where: { $0.name.lowercased() == "content-type" }) {
      fields.append(HeaderField(name: "Content-Type", value: "application/octet-stream"))
    }
    return fields
  }

  private static func isMetadata(_ field: HeaderField) -> Bool { field.name.hasPrefix(metadataPrefix) }

  private static func metadataBytes(_ fields: [HeaderField]) -> Int {
    fields.filter(isMetadata).reduce(0) { $0 + $1.name.utf8.count - metadataPrefix.utf8.count + $1.value.utf8.count }
  }

  private static let metadataPrefix = "x-amz-meta-"

  /// Whose object is in the way: this task's own of an earlier version is replaced, and any other is not.
  func occupied(_ upload: UploadOrder) async throws -> any Error {
    let there = try await look()
    // It is looked at again, and skipped.
    if there?.owner?.task == upload.task || there != nil && upload.ifExists == .skip { return UploadGone() }
    return TaskFailure(code: .destinationExists, message: "\(location) exists already: use --if-exists", class: .fail)
  }

  var damaged: TaskFailure {
    TaskFailure(
      code: .digestMismatch, message: "\(location): the store received other bytes than were sent", class: .retry)
  }
}

/// The checksums of a part.
private struct PartSums {
  let crc: UInt32
  let crc32c: String
  private let md5: String?

  init(_ bytes: ArraySlice<UInt8>, needsMD5: Bool) {
    crc = bytes.withUnsafeBytes { ReelhaulSystem.crc32c($0) }
    crc32c = S3Checksum.crc32c(crc)
    md5 = needsMD5 ? Hex.encode(digest(.md5, of: bytes)) : nil
  }

  /// What proves that the store has these bytes; nil if nothing does.
  func proof(etag: String, crc32c told: String?) -> UploadVerification? {
    if let told { return told == crc32c ? .crc32c : nil }
    return S3ETag.bare(etag).lowercased() == md5 ? .md5 : nil
  }
}

extension S3Target.Session {
  fileprivate init(_ json: [UInt8]) throws {
    do throws(DecodingFailure) {
      self = try JSONReader.read(json) { reader throws(DecodingFailure) in
        var session = S3Target.Session()
        try reader.object { reader, name throws(DecodingFailure) in
          switch name {
          case "uploadId": session.uploadID = try reader.string()
          case "checksums": session.hasChecksums = try reader.bool()
          case "wholeChecksum": session.isWhole = try reader.bool()
          case "copies": session.copies = try reader.bool()
          default: try reader.skip()
          }
        }
        return session
      }
    } catch {
      throw TaskFailure(code: .checkpointUnreadable, message: "the upload's session: \(error)", class: .wait)
    }
  }

  var json: [UInt8] {
    JSONWriter.write { json in
      json.object { json in
        json.member("uploadId", uploadID)
        json.member("checksums", hasChecksums)
        if isWhole { json.member("wholeChecksum", true) }
        if copies { json.member("copies", true) }
      }
    }
  }
}
