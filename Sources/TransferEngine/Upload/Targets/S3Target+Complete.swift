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

  /// What the tries to finish an upload have told so far.
  private struct Ending {
    var upload: UploadOrder
    let uploadID: String
    /// Of the whole file, if it is known of all parts.
    let crc32c: UInt32?
    /// The object that the store has confirmed.
    var confirmed: UploadedObject?
    /// Whether a try got no answer, and may have finished it.
    var isInDoubt = false
    /// Why the last try has not finished it, and how long to wait before the next one.
    var failure: any Error = UploadGone()
    var pause = S3Target.finishPause

    /// Whether the object at the destination has the entity tag of the confirmed one.
    func isConfirmed(_ there: UploadedObject) -> Bool { confirmed.map { S3Target.isSame(there, $0) } ?? false }
  }

  func complete(
    _ upload: UploadOrder, _ uploadID: String, _ session: Session, _ receipts: [UploadReceipt]
  ) async throws -> UploadedObject {
    var ending = Ending(upload: upload, uploadID: uploadID, crc32c: wholeCRC32C(upload, receipts))
    let hasChecksums = session.hasChecksums && !hasRefusedChecksum.isSet
    let whole = hasChecksums && session.isWhole ? ending.crc32c.map(S3Checksum.crc32c) : nil
    let plain = completion(uploadID, receipts, hasChecksums: false)
    let call = hasChecksums ? completion(uploadID, receipts, hasChecksums: true, whole: whole) : plain
    for number in 1...Self.finishes {
      if number > 1 { try await client.loop.sleep(for: ending.pause) }
      ending.pause = Self.finishPause
      do {
        ending.confirmed = try await confirmed(call, plain: hasChecksums ? plain : nil, whole, ending.upload)
      } catch let error as S3Error {
        if let object = try await refused(error, &ending) { return object }
        continue
      } catch let failure as TaskFailure where failure.class == .retry && failure.code != .digestMismatch {
        // A look tells whether it was done.
        ending.isInDoubt = true
        ending.failure = failure
      }
      if let object = try await client.loop.patiently({ [ending] in try await seen(ending) }) { return object }
    }
    if let confirmed = ending.confirmed { return Self.unseen(confirmed) }
    throw ending.failure
  }

  /// The checksum of the whole file, if it is known of all parts.
  private func wholeCRC32C(_ upload: UploadOrder, _ receipts: [UploadReceipt]) -> UInt32? {
    let parts = receipts.compactMap { receipt in
      receipt.crc32c.map { ($0, Int64(upload.plan.range(of: receipt.segment, size: upload.size).count)) }
    }
    return parts.count == receipts.count ? S3Checksum.fullCRC32C(parts) : nil
  }

  /// The request that finishes the upload.
  ///
  /// - Parameter whole: The checksum of the whole object, if the store makes one.
  private func completion(
    _ uploadID: String, _ receipts: [UploadReceipt], hasChecksums: Bool, whole: String? = nil
  ) -> S3Client.Call {
    let parts = receipts.map { receipt in
      // The store wants that of every part, whether it has told it or not.
      S3Completion.Part(
        number: receipt.segment + 1, etag: receipt.etag,
        crc32c: hasChecksums ? receipt.crc32c.map(S3Checksum.crc32c) : nil)
    }
    let xml = S3Completion(parts).xml
    var call = S3Client.Call(method: .post, key: key, query: ["uploadId": uploadID])
    call.body = { CurlBytes(xml) }
    call.payloadHash = Hex.encode(digest(.sha256, of: xml))
    call.isSlow = true
    // libcurl would repeat it by itself, and its answer would say nothing of the first.
    call.isSentOnce = true
    if let whole {
      call.headers += [HeaderField(name: Self.checksumField, value: whole), Self.wholeChecksum]
    }
    return call
  }

  /// Sends the request. Returns the object that its answer confirms.
  ///
  /// - Parameter plain: The request without checksums, for a store that refuses them; nil if it has none.
  private func confirmed(
    _ call: S3Client.Call, plain: S3Client.Call?, _ whole: String?, _ upload: UploadOrder
  ) async throws -> UploadedObject {
    let (told, head) = try await conditionally(upload, call) { call in
      do {
        return try await client.answer(S3CompletedUpload.self, call)
      } catch let error as S3Error where error.mayRefuseChecksum || error.code == "MalformedXML" {
        guard var plain else { throw error }
        plain.headers = call.headers.filter { ![Self.checksumField, Self.wholeChecksum.name].contains($0.name) }
        return try await client.answer(S3CompletedUpload.self, plain)
      }
    }
    var object = UploadedObject(etag: told.etag, versionID: head["x-amz-version-id"])
    if let whole, let crc = told.crc32c, told.checksumType == Self.wholeChecksum.value {
      guard crc == whole else { throw damaged }
      object.verified = .crc32c
    }
    return object
  }

  /// The object, if a look shows that the upload is finished.
  private func seen(_ ending: Ending) async throws -> UploadedObject? {
    var object: UploadedObject
    switch try await head() {
    // A store that keeps no metadata, or not the version, tells it by the tag.
    case .found(let there) where there.owner?.version == nil && ending.isConfirmed(there):
      object = there
    case .found(let there) where ending.upload.mayHaveMade(there, isInDoubt: ending.isInDoubt):
      object = there
      guard try await proves(&object, ending.upload, crc32c: ending.crc32c) else {
        if ending.isConfirmed(there) { throw damaged }
        // An upload before this one has made it.
        return nil
      }
    case .forbidden where ending.confirmed != nil:
      // Who may only write gets no other word than this.
      object = UploadedObject(etag: ending.confirmed?.etag, versionID: ending.confirmed?.versionID)
    default: return nil
    }
    if ending.confirmed?.verified == .crc32c { object.verified = .crc32c }
    return object
  }

  /// The object, if an earlier request of this task has made it of this version.
  private func ownObject(_ ending: Ending) async throws -> UploadedObject? {
    guard var there = try await own(ending.upload, isInDoubt: ending.isInDoubt),
      try await proves(&there, ending.upload, crc32c: ending.crc32c)
    else { return nil }
    return there
  }

  /// What follows from a refusal: the object, if it is there nevertheless; nil where the end is to be tried again.
  private func refused(_ error: S3Error, _ ending: inout Ending) async throws -> UploadedObject? {
    if Self.isUntold(error.status) || error.status < 300 { ending.isInDoubt = true }
    // Its answer may have been lost, and this one is about what it did.
    if let there = try await client.loop.patiently({ [ending] in try await ownObject(ending) }) {
      // An earlier upload of this version was joined late: this one is left.
      if error.status == 412 { _ = try? await abort(session: Session(uploadID: ending.uploadID).json) }
      return there
    }
    // It is done, and what is there now is somebody's who came later.
    if let confirmed = ending.confirmed, error.losesUpload || error.status == 412 { return Self.unseen(confirmed) }
    switch error.status {
    case 412:
      switch try await client.loop.patiently(head) {
      // Of another version, which the run before has seen, or which came late.
      case .found(let former)
      where former.owner?.task == ending.upload.task && former.etag != ending.upload.replaces:
        ending.upload.replaces = former.etag
        ending.failure = UploadGone()
        return nil
      case .absent:
        ending.failure = absent
        return nil
      case .found, .forbidden: break
      }
      try await client.loop.patiently { [ending] in try await checkDoubt(ending.upload, isInDoubt: ending.isInDoubt) }
      throw try await client.loop.patiently { [ending] in try await occupied(ending.upload) }
    case 404 where error.code == "NoSuchKey" && ending.upload.replaces != nil:
      // The object that was to be replaced is gone: the place is free.
      ending.upload.replaces = nil
      ending.failure = UploadGone()
      return nil
    case _ where error.losesUpload:
      try await client.loop.patiently { [ending] in try await checkDoubt(ending.upload, isInDoubt: ending.isInDoubt) }
      throw UploadGone()
    case 400 where error.code == "InvalidPart": throw UploadIncomplete()
    default: break
    }
    let failure = failure(error)
    let asked = failure.retryAfter ?? 0
    guard failure.class == .retry || error.status == 409, asked <= EventLoop.longestPause else { throw failure }
    // After a 409, something else happens to the object, such as the end of this upload, whose answer was lost.
    ending.failure = error.status == 409 ? UploadGone() : failure
    ending.pause = max(Self.finishPause, .seconds(asked))
    return nil
  }
}
