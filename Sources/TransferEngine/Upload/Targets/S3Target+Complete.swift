import ReelhaulCodec
import ReelhaulCurl
import ReelhaulDigest
import ReelhaulMessages
import ReelhaulSystem
import TaskCore

/// The end of a multipart upload.
extension S3Target {
  /// How often a request that finishes an upload is sent.
  private static let finishes = 5
  private static let finishPause = Duration.milliseconds(300)

  /// Nil if the object was not seen after the last try.
  func complete(
    _ upload: UploadOrder, _ uploadID: String, _ session: Session, _ receipts: [UploadReceipt]
  ) async throws -> UploadedObject? {
    var (upload, ending) = (upload, Ending())
    for number in 1...Self.finishes {
      let isLast = number == Self.finishes
      let object = try await complete(&upload, uploadID, session, receipts, &ending, isLast: isLast)
      if let object { return object }
    }
    return nil
  }

  /// The checksum of the whole file, if it is known of all parts.
  private func wholeCRC32C(_ upload: UploadOrder, _ receipts: [UploadReceipt]) -> UInt32? {
    let parts = receipts.compactMap { receipt in
      receipt.crc32c.map { ($0, Int64(upload.plan.range(of: receipt.segment, size: upload.size).count)) }
    }
    return parts.count == receipts.count ? S3Checksum.fullCRC32C(parts) : nil
  }

  static let takenRemark =
    "the store has confirmed the object, and does not show it: it was replaced or taken away at once"

  /// What the tries to finish an upload have told so far.
  private struct Ending {
    /// The object that the store has confirmed.
    var told: UploadedObject?
    /// Whether a try got no answer, and may have finished it.
    var isInDoubt = false

    /// The confirmed object, after which the store shows another one or none.
    var taken: UploadedObject? {
      var object = told
      object?.remark = S3Target.takenRemark
      return object
    }

    /// After a look that did not show the object: the confirmed one if no other try follows, or nil after a pause.
    func unseen(_ isLast: Bool, pause: () async throws -> Void) async throws -> UploadedObject? {
      if isLast, let taken { return taken }
      try await pause()
      return nil
    }
  }

  /// An upload that may have been finished is gone, or an object is in the way that may be this task's own. If nobody may
  /// look at it, another upload would find it in its way.
  func checkDoubt(_ upload: UploadOrder, isInDoubt: Bool = false) async throws {
    guard isInDoubt || upload.mayBeThere, upload.ifExists != .replace, case .forbidden = try await head() else {
      return
    }
    throw TaskFailure(
      code: .answerLost,
      message: """
        the store may have \(location) already: the answer to a request that makes it was lost, and this credential may \
        not look at the object
        """, class: .fail)
  }

  /// Nil where it is to be tried again.
  private func complete(
    _ upload: inout UploadOrder, _ uploadID: String, _ session: Session, _ receipts: [UploadReceipt],
    _ ending: inout Ending, isLast: Bool
  ) async throws -> UploadedObject? {
    let parts = receipts.map { receipt in
      // The store wants that of every part, whether it has told it or not.
      S3Completion.Part(
        number: receipt.segment + 1, etag: receipt.etag,
        crc32c: session.hasChecksums ? receipt.crc32c.map(S3Checksum.crc32c) : nil)
    }
    let xml = S3Completion(parts).xml
    var call = S3Client.Call(method: .post, key: key, query: ["uploadId": uploadID])
    call.body = { [body = upload.body] in body.document(xml) }
    call.payloadHash = Hex.encode(digest(.sha256, of: xml))
    call.isSlow = true
    // libcurl would repeat it by itself, and its answer would say nothing of the first.
    call.isSentOnce = true
    let crc32c = wholeCRC32C(upload, receipts)
    let whole = session.isWhole ? crc32c.map(S3Checksum.crc32c) : nil
    if let whole {
      call.headers += [HeaderField(name: "x-amz-checksum-crc32c", value: whole), Self.wholeChecksum]
    }
    do {
      let told = try await conditionally(upload, call) { call in
        try await client.document(S3CompletedUpload.self, call)
      }
      var object = UploadedObject(etag: told.etag)
      if let whole, let crc = told.crc32c, told.checksumType == Self.wholeChecksum.value {
        guard crc == whole else { throw damaged }
        object.verified = .crc32c
      }
      ending.told = object
    } catch let error as S3Error {
      return try await refused(error, &upload, uploadID, crc32c: crc32c, ending, isLast: isLast)
    } catch let failure as TaskFailure
      where failure.class == .retry && failure.code != .digestMismatch && (!isLast || ending.told != nil)
    {
      // A look tells whether it was done.
      ending.isInDoubt = true
    }
    var object: UploadedObject
    switch try await head() {
    // A store that keeps no metadata, or not the version, tells it by the tag.
    case .found(let there)
    where ending.told != nil && there.owner?.version == nil && Self.bare(there.etag) == Self.bare(ending.told?.etag):
      object = there
    case .found(let there) where upload.mayHaveMade(there):
      object = there
      if try await proves(&object, upload, crc32c: crc32c) { break }
      if ending.told != nil, Self.bare(there.etag) == Self.bare(ending.told?.etag) { throw damaged }
      // An upload before this one has made it.
      return try await ending.unseen(isLast) { try await client.pause(Self.finishPause) }
    case .forbidden where ending.told != nil:
      // Who may only write gets no other word than this.
      object = UploadedObject(etag: ending.told?.etag)
    default:
      return try await ending.unseen(isLast) { try await client.pause(Self.finishPause) }
    }
    if ending.told?.verified == .crc32c { object.verified = .crc32c }
    return object
  }

  /// What follows from a refusal: the object, if it is there nevertheless; nil where the end is to be tried again.
  private func refused(
    _ error: S3Error, _ upload: inout UploadOrder, _ uploadID: String, crc32c: UInt32?, _ ending: Ending, isLast: Bool
  ) async throws -> UploadedObject? {
    // Its answer may have been lost, and this one is about what it did.
    if var there = try await own(upload), try await proves(&there, upload, crc32c: crc32c) {
      // An earlier upload of this version was joined late: this one is left.
      if error.status == 412 { try? await abort(session: Session(uploadID: uploadID).json) }
      return there
    }
    // It is done, and what is there now is somebody's who came later.
    if let taken = ending.taken, error.losesUpload || error.status == 412 || isLast { return taken }
    switch error.status {
    case 412:
      // Of another version, which the run before has seen, or which came late.
      if !isLast, let former = try await look(), former.owner?.task == upload.task, former.etag != upload.replaces {
        upload.replaces = former.etag
        return nil
      }
      try? await abort(session: Session(uploadID: uploadID).json)
      try await checkDoubt(upload, isInDoubt: ending.isInDoubt)
      throw try await occupied(upload)
    case _ where error.losesUpload:
      try await checkDoubt(upload, isInDoubt: ending.isInDoubt)
      throw UploadGone()
    // Something else happens to the object, such as the end of this upload, whose answer was lost.
    case 409 where isLast: throw UploadGone()
    case 400 where error.code == "InvalidPart": throw UploadIncomplete()
    default: break
    }
    let failure = failure(error)
    let asked = failure.retryAfter ?? 0
    guard failure.class == .retry || error.status == 409, !isLast, asked <= UploadQueue.longestPause else {
      throw failure
    }
    try await client.pause(max(Self.finishPause, .seconds(asked)))
    return nil
  }

  private static func bare(_ etag: String?) -> String? { etag.map(S3ETag.bare) }
}
