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
  /// The task's own header fields, for the request that makes the object.
  var fields: [HeaderField] = []
  /// Whether a source at `s3://` is in the same store, with the same credential. Then the store copies by itself.
  var sharesSource = false
  /// Whether the store has refused to copy by itself.
  let hasRefusedCopy = Flag()
  /// Whether the store has refused a request for its condition, or for its checksum.
  let hasRefusedCondition = Flag()
  let hasRefusedChecksum = Flag()
  /// Whether the store refuses the question for an object's checksum.
  let hasRefusedMode = Flag()

  static let standardPart: Int64 = 8 << 20
  private static let mostParts: Int64 = 10_000
  /// How often an upload is given up of which the store still lists parts.
  private static let aborts = 3
  /// Bytes; stores have up to some 200.
  private static let longestID = 4096
  private static let parallel = 16
  /// Bytes of parts that one upload holds in memory: a part is held whole while it is sent.
  private static let mostHeld: Int64 = 256 << 20
  private let hasSent = Flag()
  /// Whether the one request that makes the object may have been done before, without an answer to it.
  private let isInDoubt = Flag()

  var location: String { client.place(key) }

  var server: String { get async { await client.server() } }

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

  func begin(_ upload: UploadOrder) async throws -> [UInt8] {
    let copies = copiesByStore(upload)
    guard !upload.plan.publishesAtOnce else { return Session(copies: copies).json }
    // The newest way first: older stores refuse it.
    var ways = [Session(hasChecksums: false, copies: copies)]
    if !copies, parameters.checksum != UploadParameters.Checksum.none { ways += [Session(), Session(isWhole: true)] }
    while true {
      do {
        return try await create(upload, ways.removeLast()).json
      } catch let error as S3Error
        where [400, 501].contains(error.status) && !error.refreshesCredentials && !ways.isEmpty
      {
        // An older way may do.
      } catch {
        throw client.failure(error, key)
      }
    }
  }

  func resume(_ upload: UploadOrder, session: [UInt8]) async throws -> UploadStanding {
    let session = try Session(session)
    // A run before has asked.
    if !session.copies, copiesByStore(upload) { hasRefusedCopy.set() }
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
          group.addTask { try await client.loop.patiently { try await receipt(of: part, in: upload, session) } }
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
    of part: S3PartList.Part, in upload: UploadOrder, _ session: Session
  ) async throws -> UploadReceipt? {
    try Task.checkCancellation()
    let segment = part.number - 1
    let range = upload.plan.range(of: segment, size: upload.size)
    guard part.size == Int64(range.count) else { return nil }
    // It was copied of this version only.
    if session.copies { return UploadReceipt(segment: segment, etag: part.etag) }
    let sums = try await client.holding(range, of: upload.body.source) { bytes in
      try await client.computing { PartSums(bytes, needsMD5: part.crc32c == nil) }
    }
    guard let proof = sums.proof(etag: part.etag, crc32c: part.crc32c) else { return nil }
    return UploadReceipt(segment: segment, etag: part.etag, verified: proof, crc32c: sums.crc)
  }

  func send(_ segment: UploadSegment, of upload: UploadOrder, session: [UInt8]) async throws -> UploadReceipt {
    let session = try Session(session)
    if session.copies { return try await copy(segment, of: upload, session) }
    return try await client.holding(segment.range, of: upload.body.source) { bytes in
      if let uploadID = session.uploadID {
        try await putPart(segment, bytes, of: upload, session, uploadID)
      } else {
        try await putObject(segment, bytes, of: upload, session)
      }
    }
  }

  private func putPart(
    _ segment: UploadSegment, _ bytes: ArraySlice<UInt8>, of upload: UploadOrder, _ session: Session,
    _ uploadID: String
  ) async throws -> UploadReceipt {
    var (call, sums) = try await put(bytes, of: upload, session)
    call.query = ["partNumber": "\(segment.number + 1)", "uploadId": uploadID]
    let refusedBefore = hasRefusedChecksum.isSet
    do {
      let receipt = try await receipt(of: segment, try await sendBytes(call).head, bytes, sums)
      if !refusedBefore, hasRefusedChecksum.isSet {
        // Its parts have none, and so its end must have none.
        try await upload.record(Session(uploadID: uploadID, hasChecksums: false).json)
      }
      return receipt
    } catch let error as S3Error {
      guard error.losesUpload else { throw failure(error) }
      try await checkDoubt(upload)
      throw UploadGone()
    }
  }

  /// The one request that makes the object.
  private func putObject(
    _ segment: UploadSegment, _ bytes: ArraySlice<UInt8>, of upload: UploadOrder, _ session: Session
  ) async throws -> UploadReceipt {
    try await upload.body.source.check()
    var (call, sums) = try await put(bytes, of: upload, session)
    call.headers += objectFields(upload)
    // Before the first try the run has looked.
    let isAgain = hasSent.testAndSet()
    if isAgain || upload.mayBeThere {
      if isInDoubt.isSet, let receipt = try await receipt(of: segment, upload, from: look()) {
        return receipt
      }
      try await checkDestination(upload)
    }
    let brought: UploadReceipt
    do {
      brought = try await conditionally(upload, call) { try await object(of: segment, $0, bytes, sums) }
    } catch let error as S3Error {
      // An error inside a success comes from a store that had begun.
      if Self.isUntold(error.status) || error.status < 300 { isInDoubt.set() }
      // The object that was to be replaced is gone: the place is free.
      if upload.replaces != nil, error.code == "NoSuchKey" { throw UploadGone() }
      guard error.status == 412 else { throw client.failure(error, key) }
      // A 412 may come from this task's own object: of the try before, or of another version.
      let there = try await look()
      if let receipt = try await receipt(of: segment, upload, from: there) { return receipt }
      guard let there, there.owner?.task == upload.task else {
        let isInDoubt = isInDoubt.isSet
        try await checkDoubt(upload, isInDoubt: isInDoubt)
        // It was there before. The next run need not doubt it either.
        if !isInDoubt, !upload.mayBeThere { try await upload.publishing(false) }
        throw try await occupied(upload)
      }
      call.headers.append(HeaderField(name: "If-Match", value: there.etag ?? ""))
      do { brought = try await object(of: segment, call, bytes, sums) } catch { throw client.failure(error, key) }
    } catch {
      isInDoubt.set()
      throw error
    }
    try await proveConditions(upload, call, made: brought.etag)
    return brought
  }

  /// Sends the one request that makes the object.
  private func object(
    of segment: UploadSegment, _ call: S3Client.Call, _ bytes: ArraySlice<UInt8>, _ sums: PartSums
  ) async throws -> UploadReceipt {
    let answer = try await sendBytes(call)
    let receipt = try await receipt(of: segment, answer.head, bytes, sums)
    guard receipt.verified != nil || answer.body.isEmpty else {
      throw TaskFailure.badResponse("a success has a page inside, and nothing proves that it is one", url: location)
    }
    return receipt
  }

  /// What an earlier request of this task got no answer to, if that has made the object which is there.
  private func receipt(
    of segment: UploadSegment, _ upload: UploadOrder, from there: UploadedObject?
  ) async throws -> UploadReceipt? {
    let isInDoubt = isInDoubt.isSet
    guard var there, upload.mayHaveMade(there, isInDoubt: isInDoubt), try await proves(&there, upload) else {
      return nil
    }
    return UploadReceipt(
      segment: segment.number, etag: there.etag ?? "", verified: there.verified == .none ? nil : there.verified,
      versionID: there.versionID)
  }

  /// The request that brings bytes, and their checksums.
  private func put(
    _ bytes: ArraySlice<UInt8>, of upload: UploadOrder, _ session: Session
  ) async throws -> (call: S3Client.Call, sums: PartSums) {
    let isPlain = try await client.isPlain()
    let (sums, hash) = try await client.computing {
      (PartSums(bytes, needsMD5: false), isPlain ? Hex.encode(digest(.sha256, of: bytes)) : nil)
    }
    var call = S3Client.Call(method: .put, key: key)
    call.body = { [body = upload.body, isInDoubt] in
      body.holding(bytes) { isInDoubt.set() }
    }
    // Where there are no bytes to repeat, libcurl does not tell that it repeats.
    call.isSentOnce = bytes.isEmpty
    call.payloadHash = hash
    if session.hasChecksums, parameters.checksum != UploadParameters.Checksum.none {
      call.headers.append(HeaderField(name: Self.checksumField, value: sums.crc32c))
    }
    return (call, sums)
  }

  /// What the answer to a request that brought bytes says, and proves.
  private func receipt(
    of segment: UploadSegment, _ head: CurlHead, _ bytes: ArraySlice<UInt8>, _ sums: PartSums
  ) async throws -> UploadReceipt {
    guard let etag = head["etag"] else { throw TaskFailure.badResponse("a part has no ETag", url: location) }
    let echoed = head[Self.checksumField]
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
    var object: UploadedObject
    if let uploadID = session.uploadID {
      try await client.loop.patiently { try await checkDestination(upload, beforeJoining: true) }
      object = try await complete(upload, uploadID, session, receipts)
    } else {
      object = try await made(upload, session, receipts)
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

  /// The object that one request has made.
  private func made(
    _ upload: UploadOrder, _ session: Session, _ receipts: [UploadReceipt]
  ) async throws -> UploadedObject {
    guard let receipt = receipts.first else {
      throw TaskFailure.badResponse("the object is not there after its upload", url: location)
    }
    // The answer to the PUT says all that a HEAD would.
    if receipt.verified != nil {
      return UploadedObject(size: upload.size, etag: receipt.etag, versionID: receipt.versionID)
    }
    switch try await head() {
    case .found(var there)
    where (there.owner == nil || upload.mayHaveMade(there)) && !Self.isSame(there, receipt.object):
      if try await proves(&there, upload) { return there }
      guard there.owner == nil else { throw damaged }
      // One that does not say whose it is: somebody has replaced it at once.
      return Self.unseen(receipt.object)
    case .found(let there): return there
    case .forbidden: return receipt.object
    // The document that answers a copy is the store's own word.
    case .absent where session.copies: return Self.unseen(receipt.object)
    case .absent:
      S3Conditions.forget(.ignored, of: try await client.store().name)
      throw TaskFailure.badResponse(
        "the store has confirmed the object without a proof that it has it, and does not show it", url: location)
    }
  }

  @discardableResult
  func abort(session: [UInt8]) async throws -> Bool {
    guard let uploadID = try Session(session).uploadID else { return false }
    var hasEnded = false
    for number in 0..<Self.aborts {
      if number > 0 { try await client.loop.sleep(for: .seconds(1)) }
      do {
        _ = try await client.send(S3Client.Call(method: .delete, key: key, query: ["uploadId": uploadID]))
      } catch let error as S3Error {
        guard error.losesUpload else { throw failure(error) }
        return hasEnded
      }
      hasEnded = true
      // A part that was on its way may be stored in spite of it, and stays until this is repeated.
      guard let left = try? await parts(of: uploadID), !left.isEmpty else { return true }
    }
    return false
  }

  // MARK: Requests

  /// Sends a request that brings bytes. One that the store may have refused for its checksum is sent once more without it,
  /// and so are all others if it passes then.
  func sendBytes(_ call: S3Client.Call) async throws -> CurlAnswer {
    var call = call
    if hasRefusedChecksum.isSet { call.headers.removeAll { $0.name == Self.checksumField } }
    do {
      return try await stored(call)
    } catch let error as S3Error where error.mayRefuseChecksum {
      guard call.headers.contains(where: { $0.name == Self.checksumField }) else { throw error }
      call.headers.removeAll { $0.name == Self.checksumField }
      let answer = try await stored(call)
      hasRefusedChecksum.set()
      return answer
    }
  }

  /// The answer to a request that brings bytes. An error inside a success is that error.
  private func stored(_ call: S3Client.Call) async throws -> CurlAnswer {
    let answer = try await client.send(call)
    guard !answer.body.isEmpty else { return answer }
    let error = S3Error(answer.head, body: answer.body)
    if error.code != nil { throw error }
    return answer
  }

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
    guard document.uploadID.utf8.count <= Self.longestID else {
      throw TaskFailure.badResponse("the id of the new upload is too long", url: location)
    }
    session.uploadID = document.uploadID
    session.isWhole = way.isWhole && head["x-amz-checksum-type"] == Self.wholeChecksum.value
    return session
  }

  /// The statuses with which a store refuses to list uploads or parts: who may write need not be allowed to.
  static let mayNotList = [403, 405, 501]

  func parts(of uploadID: String) async throws -> [S3PartList.Part] {
    var parts: [S3PartList.Part] = []
    var marker: Int?
    repeat {
      var query: S3Query = ["uploadId": uploadID]
      if let marker { query.append("part-number-marker", "\(marker)") }
      let call = S3Client.Call(method: .get, key: key, query: query)
      // There may be many pages, and a store that is asked for too much by all uploads together.
      let page = try await client.loop.patiently {
        do {
          return try await client.document(S3PartList.self, call)
        } catch let error as S3Error where error.isThrottling {
          throw failure(error)
        }
      }
      // A store that does not look at the marker begins again.
      let more = page.parts.filter { $0.number > marker ?? 0 }
      parts += more
      marker = more.isEmpty ? nil : page.nextMarker
    } while marker != nil && parts.count <= Self.mostParts
    return parts
  }
}
