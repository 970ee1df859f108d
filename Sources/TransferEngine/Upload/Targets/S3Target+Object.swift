import ReelhaulCodec
import ReelhaulCurl
import ReelhaulDigest
import ReelhaulMessages
import ReelhaulSystem
import TaskCore

/// What the store says of the object, and what that proves.
extension S3Target {
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
    do {
      guard !hasRefusedMode.isSet else { return try await head(asking: []) }
      do {
        return try await head(asking: [HeaderField(name: "x-amz-checksum-mode", value: "ENABLED")])
      } catch let error as S3Error where error.mayRefuseChecksum {
        // Some stores know no checksums, and refuse who asks for one.
        let look = try await head(asking: [])
        hasRefusedMode.set()
        return look
      }
    } catch {
      throw client.failure(error, key)
    }
  }

  /// Throws ``S3Error`` for an answer that says nothing of the object.
  private func head(asking fields: [HeaderField]) async throws -> Look {
    let head: CurlHead
    do {
      head = try await client.send(S3Client.Call(method: .head, key: key, headers: fields)).head
    } catch let error as S3Error where error.status == 404 {
      return .absent
    } catch let error as S3Error where error.status == 403 {
      return .forbidden
    }
    var object = UploadedObject(
      size: head.number("content-length"), etag: head["etag"], versionID: head["x-amz-version-id"])
    if let task = head["x-amz-meta-reelhaul-task"].flatMap({ UniqueID($0) }) {
      object.owner = .init(task: task, version: head["x-amz-meta-reelhaul-version"])
    }
    if head["x-amz-checksum-type"] == Self.wholeChecksum.value { object.checksum = head["x-amz-checksum-crc32c"] }
    object.md5 = Self.md5(head)
    return .found(object)
  }

  /// The MD5 of the bytes that the store has, if the entity tag is one. That of an encrypted object may look like one.
  static func md5(_ head: CurlHead) -> String? {
    guard head["x-amz-server-side-encryption"]?.hasPrefix("aws:kms") != true,
      head["x-amz-server-side-encryption-customer-algorithm"] == nil
    else { return nil }
    return head["etag"].flatMap(S3ETag.md5)
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

  /// An object that the store has confirmed, and after which it shows another one or none.
  static func unseen(_ confirmed: UploadedObject) -> UploadedObject {
    var object = confirmed
    object.remark =
      "the store has confirmed the object, and does not show it: it was replaced or taken away at once"
    return object
  }

  /// Whether two objects have the same entity tag.
  static func isSame(_ there: UploadedObject, _ confirmed: UploadedObject) -> Bool {
    there.etag.map(S3ETag.bare) == confirmed.etag.map(S3ETag.bare)
  }

  /// The object, if this task has made it of this version, or of one that it does not tell.
  func own(_ upload: UploadOrder, isInDoubt: Bool = false) async throws -> UploadedObject? {
    guard let there = try await look(), upload.mayHaveMade(there, isInDoubt: isInDoubt) else { return nil }
    return there
  }

  /// Whose object is in the way: this task's own of an earlier version is replaced, and any other is not.
  func occupied(_ upload: UploadOrder) async throws -> any Error {
    switch try await head() {
    // It is looked at again, and skipped.
    case .found(let there) where there.owner?.task == upload.task || upload.ifExists == .skip: return UploadGone()
    case .absent: return absent
    case .found, .forbidden: break
    }
    return TaskFailure(code: .destinationExists, message: "\(location) exists already: use --if-exists", class: .fail)
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

  /// Something is in the way, and a look shows nothing.
  var absent: TaskFailure {
    TaskFailure.badResponse("the store says that an object is there already, and shows none", url: location)
  }

  var damaged: TaskFailure {
    TaskFailure(
      code: .digestMismatch, message: "\(location): the store received other bytes than were sent", class: .retry)
  }
}
