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

  static let standardPart: Int64 = 8 << 20
  private static let mostParts: Int64 = 10_000
  private static let parallel = 16
  /// How often a request that finishes an upload is sent.
  private static let finishes = 5

  /// Nil for an object that one PUT makes.
  fileprivate struct Session {
    var uploadID: String?
    /// Whether the store takes checksums of parts.
    var hasChecksums = true
  }

  var location: String { client.place(key) }

  func plan(size: Int64) async throws -> UploadPlan {
    var part = parameters.partSize ?? Self.standardPart
    // The number of parts is limited. All are of one size, as some stores require.
    let least = (size + Self.mostParts - 1) / Self.mostParts
    if part < least { part = ((least - 1) >> 20 + 1) << 20 }
    guard size > part else { return UploadPlan(segmentSize: max(1, size), parallel: 1, publishesAtOnce: true) }
    return UploadPlan(segmentSize: part, parallel: Self.parallel)
  }

  func look() async throws -> UploadedObject? {
    let call = S3Client.Call(
      method: .head, key: key, headers: [HeaderField(name: "x-amz-checksum-mode", value: "ENABLED")])
    let head: CurlHead
    do {
      head = try await client.send(call).head
    } catch let error as S3Error {
      // Without the right to list the bucket, a missing object looks like a forbidden one.
      if error.status == 404 || error.status == 403 { return nil }
      throw client.failure(error, key)
    }
    var object = UploadedObject(
      size: head["content-length"].flatMap { Int64($0) }, etag: head["etag"], versionID: head["x-amz-version-id"])
    if let task = head["x-amz-meta-reelhaul-task"].flatMap({ UniqueID($0) }),
      let generation = head["x-amz-meta-reelhaul-generation"].flatMap({ Int($0) })
    {
      object.owner = .init(task: task, generation: generation)
    }
    return object
  }

  func begin(_ upload: UploadOrder) async throws -> [UInt8] {
    guard !upload.plan.publishesAtOnce else { return Session().json }
    var session = Session(hasChecksums: parameters.checksum != UploadParameters.Checksum.none)
    do {
      session.uploadID = try await create(upload, withChecksums: session.hasChecksums)
    } catch let error as S3Error where session.hasChecksums && [400, 501].contains(error.status) {
      // A store that does not know the algorithm.
      session.hasChecksums = false
      session.uploadID = try await failing { try await create(upload, withChecksums: false) }
    } catch {
      throw client.failure(error, key)
    }
    return session.json
  }

  func resume(_ upload: UploadOrder, session: [UInt8], source: any UploadSource) async throws -> UploadStanding {
    let session = try Session(session)
    if upload.mayBeThere, let there = try await own(upload) { return .finished(there) }
    guard let uploadID = session.uploadID else { return .open([:]) }
    let listed: [S3PartList.Part]
    do {
      listed = try await parts(of: uploadID)
    } catch let error as S3Error {
      guard error.status == 404 else { throw client.failure(error, key) }
      return .gone
    }
    var receipts: [Int: UploadReceipt] = [:]
    let count = upload.plan.segments(of: upload.size)
    for part in listed where (1...count).contains(part.number) {
      let range = upload.plan.range(of: part.number - 1, size: upload.size)
      guard part.size == Int64(range.count) else { continue }
      let sums = PartSums(try await source.read(range), needsMD5: part.crc32c == nil)
      if let proof = sums.proof(etag: part.etag, crc32c: part.crc32c) {
        receipts[part.number - 1] = UploadReceipt(
          segment: part.number - 1, etag: part.etag, checksum: "\(proof.rawValue):\(sums.crc32c)")
      }
    }
    return .open(receipts)
  }

  func forget(_ plan: UploadPlan, since milliseconds: Int64) async throws {
    guard !plan.publishesAtOnce else { return }
    for found in try await failing({ try await uploads() }) {
      // Begun when this task was about to, and nobody has sent anything.
      guard let initiated = found.initiated.map({ $0.microseconds / 1000 }),
        (milliseconds - 5000...milliseconds + 60_000).contains(initiated),
        try await failing({ try await parts(of: found.uploadID) }).isEmpty
      else { continue }
      try await abort(session: Session(uploadID: found.uploadID).json)
    }
  }

  func send(_ segment: UploadSegment, of upload: UploadOrder, session: [UInt8]) async throws -> UploadReceipt {
    let session = try Session(session)
    let bytes = try await upload.body.source.read(segment.range)
    let sums = PartSums(bytes, needsMD5: false)
    var call = S3Client.Call(method: .put, key: key)
    call.body = { [body = upload.body] in body.holding(bytes) }
    if try await client.isPlain() { call.payloadHash = Hex.encode(digest(.sha256, of: bytes)) }
    if session.hasChecksums, parameters.checksum != UploadParameters.Checksum.none {
      call.headers.append(HeaderField(name: "x-amz-checksum-crc32c", value: sums.crc32c))
    }
    if let uploadID = session.uploadID {
      call.query = ["partNumber": "\(segment.number + 1)", "uploadId": uploadID]
    } else {
      call.headers += objectFields(upload)
      call.headers += condition(upload)
    }
    let head: CurlHead
    do {
      head = try await client.send(call).head
    } catch let error as S3Error {
      if session.uploadID != nil, error.status == 404, error.code != "NoSuchBucket" { throw UploadGone() }
      if error.status == 412 {
        // A 412 may come from this task's own object of the try before.
        guard let there = try await own(upload) else { throw try await occupied(upload) }
        return UploadReceipt(segment: segment.number, etag: there.etag ?? "", checksum: nil)
      }
      throw client.failure(error, key)
    }
    guard let etag = head["etag"] else { throw TaskFailure.badResponse("a part has no ETag", url: location) }
    let echoed = head["x-amz-checksum-crc32c"]
    let proof = PartSums(bytes, needsMD5: echoed == nil).proof(etag: etag, crc32c: echoed)
    // A tag that is no MD5 is that of an encrypted part, and proves nothing.
    if proof == nil, echoed != nil || S3ETag.looksLikeMD5(etag) { throw damaged }
    return UploadReceipt(
      segment: segment.number, etag: etag, checksum: "\((proof ?? .none).rawValue):\(sums.crc32c)")
  }

  func finish(_ upload: UploadOrder, session: [UInt8], receipts: [UploadReceipt]) async throws -> UploadedObject {
    let session = try Session(session)
    var object: UploadedObject?
    if let uploadID = session.uploadID {
      for number in 0..<Self.finishes where object == nil {
        object = try await complete(upload, uploadID, session, receipts, isLast: number == Self.finishes - 1)
      }
    }
    if object == nil { object = try await look() }
    guard var object else {
      throw TaskFailure.badResponse("the object is not there after its upload", url: location)
    }
    if let owner = object.owner, owner != .init(task: upload.task, generation: upload.generation) {
      throw TaskFailure(
        code: .destinationExists, message: "\(location) was replaced by somebody else as soon as it was uploaded",
        class: .fail)
    }
    let kinds = Set(receipts.map { $0.checksum?.prefix { $0 != ":" } })
    object.verified =
      kinds == ["crc32c"] ? .crc32c : kinds.isSubset(of: ["crc32c", "md5"]) ? .md5 : object.size == nil ? .none : .size
    return object
  }

  func abort(session: [UInt8]) async throws {
    guard let uploadID = try Session(session).uploadID else { return }
    do {
      _ = try await client.send(S3Client.Call(method: .delete, key: key, query: ["uploadId": uploadID]))
    } catch let error as S3Error {
      guard error.status == 404 else { throw client.failure(error, key) }
    }
  }

  // MARK: Requests

  private func create(_ upload: UploadOrder, withChecksums: Bool) async throws -> String {
    var call = S3Client.Call(method: .post, key: key, query: ["uploads": ""], headers: objectFields(upload))
    if withChecksums { call.headers.append(HeaderField(name: "x-amz-checksum-algorithm", value: "CRC32C")) }
    return try await client.document(S3InitiatedUpload.self, call).uploadID
  }

  /// Nil where it is to be tried again.
  private func complete(
    _ upload: UploadOrder, _ uploadID: String, _ session: Session, _ receipts: [UploadReceipt], isLast: Bool
  ) async throws -> UploadedObject? {
    let parts = receipts.map { receipt in
      // The store wants that of every part, whether it has told it or not.
      let crc = receipt.checksum.flatMap { $0.split(separator: ":").last.map(String.init) }
      return S3Completion.Part(
        number: receipt.segment + 1, etag: receipt.etag, crc32c: session.hasChecksums ? crc : nil)
    }
    let xml = S3Completion(parts).xml
    var call = S3Client.Call(method: .post, key: key, query: ["uploadId": uploadID])
    call.body = { [body = upload.body] in body.document(xml) }
    call.payloadHash = Hex.encode(digest(.sha256, of: xml))
    call.isSlow = true
    call.headers += condition(upload)
    do {
      _ = try await client.document(S3CompletedUpload.self, call)
    } catch let error as S3Error {
      // Its answer may have been lost, and this one is about what it did.
      if let there = try await own(upload) { return there }
      switch error.status {
      case 412:
        try? await abort(session: Session(uploadID: uploadID).json)
        throw try await occupied(upload)
      case 404 where error.code != "NoSuchBucket": throw UploadGone()
      case 409: throw UploadGone()
      default: break
      }
      let failure = client.failure(error, key)
      guard let failure = failure as? TaskFailure, failure.class == .retry, !isLast else { throw failure }
    } catch let failure as TaskFailure where failure.class == .retry && !isLast {
      if let there = try await own(upload) { return there }
    }
    return try await own(upload)
  }

  /// The object, if it is this task's.
  private func own(_ upload: UploadOrder) async throws -> UploadedObject? {
    guard let there = try await look(), there.owner == .init(task: upload.task, generation: upload.generation) else {
      return nil
    }
    return there
  }

  private func parts(of uploadID: String) async throws -> [S3PartList.Part] {
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

  /// The open uploads to exactly this key.
  private func uploads() async throws -> [S3UploadList.Upload] {
    var uploads: [S3UploadList.Upload] = []
    var next: S3UploadList.Marker?
    repeat {
      var query: S3Query = ["uploads": "", "prefix": key, "encoding-type": "url"]
      if let next {
        query.append("key-marker", next.key)
        if let id = next.uploadID { query.append("upload-id-marker", id) }
      }
      let page = try await client.document(S3UploadList.self, S3Client.Call(method: .get, query: query))
      uploads += page.uploads.filter { $0.key.utf8.elementsEqual(key.utf8) }
      next = page.next
    } while next != nil && uploads.count < 1000
    return uploads
  }

  private func objectFields(_ upload: UploadOrder) -> [HeaderField] {
    var fields = [
      HeaderField(name: "Content-Type", value: parameters.contentType ?? "application/octet-stream"),
      HeaderField(name: "x-amz-meta-reelhaul-task", value: "\(upload.task)"),
      HeaderField(name: "x-amz-meta-reelhaul-generation", value: "\(upload.generation)"),
    ]
    if let storageClass = parameters.storageClass {
      fields.append(HeaderField(name: "x-amz-storage-class", value: storageClass))
    }
    for (name, value) in parameters.metadata.sorted(by: { $0.key < $1.key }) {
      fields.append(HeaderField(name: "x-amz-meta-\(name)", value: value))
    }
    return fields
  }

  private func failing<Result>(_ body: () async throws -> Result) async throws -> Result {
    do { return try await body() } catch { throw client.failure(error, key) }
  }

  /// Whose object is in the way: this task's own of an earlier version is replaced, and any other is not.
  private func occupied(_ upload: UploadOrder) async throws -> any Error {
    if try await look()?.owner?.task == upload.task { return UploadGone() }
    return TaskFailure(code: .destinationExists, message: "\(location) exists already: use --if-exists", class: .fail)
  }

  private func condition(_ upload: UploadOrder) -> [HeaderField] {
    if let etag = upload.replaces { return [HeaderField(name: "If-Match", value: etag)] }
    return upload.ifExists == .fail ? [HeaderField(name: "If-None-Match", value: "*")] : []
  }

  private var damaged: TaskFailure {
    TaskFailure(
      code: .digestMismatch, message: "\(location): the store received other bytes than were sent", class: .retry)
  }
}

/// The checksums of a part.
private struct PartSums {
  let crc32c: String
  private let md5: String?

  init(_ bytes: [UInt8], needsMD5: Bool) {
    crc32c = S3Checksum.crc32c(bytes.withUnsafeBytes { ReelhaulSystem.crc32c($0) })
    md5 = needsMD5 ? Hex.encode(digest(.md5, of: bytes)) : nil
  }

  /// What proves that the store has these bytes; nil if nothing does.
  func proof(etag: String, crc32c told: String?) -> UploadVerification? {
    if let told { return told == crc32c ? .crc32c : nil }
    return S3ETag.bare(etag) == md5 ? .md5 : nil
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
          default: try reader.skip()
          }
        }
        return session
      }
    } catch {
      throw TaskFailure(code: .checkpointUnreadable, message: "the upload's session: \(error)", class: .wait)
    }
  }

  fileprivate var json: [UInt8] {
    JSONWriter.write { json in
      json.object { json in
        json.member("uploadId", uploadID)
        json.member("checksums", hasChecksums)
      }
    }
  }
}
