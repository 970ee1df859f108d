import ReelhaulCodec
import ReelhaulCurl
import ReelhaulDigest
import ReelhaulSystem
import TaskCore

// Objects of S3.
extension RemoteDeletion {
  private static let retries = 5
  /// How many objects are deleted at once where the store deletes only single ones.
  private static let window = 8
  /// How often a folder is listed from its beginning until nothing is left.
  private static let rounds = 4
  /// How many pages of a listing may follow each other without an object: a listing of them alone might never end.
  private static let emptyPages = 1000

  func delete(_ place: S3URL) async throws -> Result {
    let client = S3Client(bucket: place.bucket, root: root, credential: spec.credential, ledger: ledger)
    guard !place.isFolder else { return try await deleteAll(below: place.key, client) }
    do {
      return try await deleteOne(place, client)
    } catch {
      throw client.failure(error, place.key)
    }
  }

  private func deleteOne(_ place: S3URL, _ client: S3Client) async throws -> Result {
    let query: S3Query = place.versionID.map { ["versionId": $0] } ?? [:]
    var call = S3Client.Call(method: .head, key: place.key, query: query, headers: spec.headers)
    var (size, tag): (Int64?, String?)
    do {
      let head = try await client.send(call).head
      // Its DELETE would delete the current version.
      if let failure = place.otherVersion(in: head) { throw failure }
      (size, tag) = (head.number("content-length"), head["etag"])
    } catch let error as S3Error {
      guard error.status != 404 else {
        try await checkAbsence(call, client)
        try await checkBucket(client)
        guard place.versionID != nil, spec.expect.bytes == nil else { return .absent }
        // Some stores show no delete marker, and some know no versions at all.
        call.method = .delete
        let answer: CurlAnswer?
        do { answer = try await sendDelete(call, client) } catch let error as S3Error where error.status == 501 {
          return .absent
        }
        return answer?.head["x-amz-delete-marker"] == "true" ? Result(files: 1, bytes: nil) : .absent
      }
      // A delete marker has no head. Who may only delete gets none either; the DELETE says more if it is refused. But a
      // store that knows no versions would delete the object.
      let isMarker = error.status == 405 && place.versionID != nil
      let knowsVersions = try await client.store().isAWS
      let isUnseen = error.status == 403 && (!place.namesVersion || knowsVersions)
      guard spec.expect.bytes == nil, isMarker || isUnseen else { throw error }
    }
    if let expected = spec.expect.bytes {
      try check(size, expected, client.place(place.key))
      // It must still be the same when it is deleted. A version never changes.
      if let tag, place.versionID == nil { call.headers.append(HeaderField(name: "If-Match", value: tag)) }
    }
    call.method = .delete
    do {
      try await sendDelete(call, client)
    } catch let error as S3Error where error.mayRefuseField && call.headers.count > spec.headers.count {
      // A store that does not know the condition.
      call.headers = spec.headers
      try await sendDelete(call, client)
    } catch let error as S3Error where error.status == 412 {
      throw TaskFailure(
        code: error.taskCode, message: "\(client.place(place.key)) has changed since its size was compared",
        class: .retry)
    }
    return Result(files: 1, bytes: size)
  }

  /// Throws unless the store itself says that the object is not there. A 404 without the store's word for it, as every
  /// one to a HEAD, may come from a gateway before the store.
  private func checkAbsence(_ call: S3Client.Call, _ client: S3Client) async throws {
    var look = call
    look.method = .get
    look.headers = spec.headers + [HeaderField(name: "Range", value: "bytes=0-0")]
    do {
      _ = try await client.send(look)
    } catch let error as S3Error where error.isAboutAbsentKey {
      return
    } catch let error as S3Error where error.isMute404 || error.status == 416 {
      // The store has not been asked, or the object is empty.
    }
    throw TaskFailure(
      code: .http(404), message: "\(client.place(call.key)): status 404 does not say that the object is not there",
      class: .retry)
  }

  /// Some stores say of an object that it is not there where the whole bucket is missing.
  private func checkBucket(_ client: S3Client) async throws {
    do {
      _ = try await client.send(S3Client.Call(method: .head))
    } catch let error as S3Error where error.status == 404 {
      throw S3Error(status: 404, code: "NoSuchBucket", message: "there is no bucket \(client.bucket)")
    } catch is S3Error {
      // It is there, and may not be looked at.
    }
  }

  /// Returns nil if the store says that the object is not there, which is success.
  @discardableResult
  private func sendDelete(_ call: S3Client.Call, _ client: S3Client) async throws -> CurlAnswer? {
    guard ledger.mayWrite else { throw CancellationError() }
    do {
      return try await client.send(call)
    } catch let error as S3Error where error.isAboutAbsentKey {
      return nil
    } catch let error as S3Error where error.isMute404 {
      try await checkAbsence(call, client)
      return nil
    }
  }

  // MARK: Folders

  /// What a round has deleted, and what the store did not delete.
  private struct Sweep {
    /// What was deleted before.
    let before: Deletion.Count
    var count: Deletion.Count
    var isBulk = true
    /// One failure for all: of an object that cannot be deleted at all, if there is one, because another attempt does not
    /// help then.
    var failure: TaskFailure?
    var refused = 0
    /// When the newest object that was listed was stored.
    var newest: Timestamp?

    init(after before: Deletion.Count) { (self.before, count) = (before, before) }

    /// An object that was counted is there still. One that got its time before it was listed was never counted.
    mutating func uncount(_ size: Int64) {
      count.files = max(before.files, count.files - 1)
      count.bytes = max(before.bytes, count.bytes - size)
    }
  }

  /// Deletes all objects whose keys begin with `prefix`, page by page, until a listing has none. Every run begins with a
  /// new listing.
  private func deleteAll(below prefix: String, _ client: S3Client) async throws -> Result {
    guard spec.expect == Expectation() else {
      throw TaskFailure(
        code: .parametersInvalid, message: "\(client.place(prefix)) is many objects, which have no size to compare",
        class: .fail)
    }
    var sweep = Sweep(after: before)
    for _ in 0..<Self.rounds {
      guard try await round(prefix, client, &sweep) else {
        return sweep.count.files == 0
          ? .absent : Result(files: sweep.count.files, bytes: sweep.count.bytes)
      }
      guard var failure = sweep.failure else { continue }
      if sweep.refused > 1 { failure.message += " (and \(sweep.refused - 1) other objects)" }
      throw failure
    }
    throw TaskFailure(
      code: .sourceChanging, message: "\(client.place(prefix)) gets new objects while they are deleted", class: .retry)
  }

  /// Returns false if there was nothing.
  private func round(_ prefix: String, _ client: S3Client, _ sweep: inout Sweep) async throws -> Bool {
    var token: String?
    var wasThere = false
    var empty = 0
    let earlier = sweep.newest
    repeat {
      var query: S3Query = ["list-type": "2", "prefix": prefix, "encoding-type": "url"]
      if let token { query.append("continuation-token", token) }
      let call = S3Client.Call(method: .get, query: query, headers: spec.headers)
      let page = try await retrying(client, prefix) { try await client.document(S3ObjectList.self, call) }
      guard page.objects.allSatisfy({ $0.key.utf8.starts(with: prefix.utf8) }) else {
        throw TaskFailure(
          code: .badResponse, message: "\(client.place(prefix)): the store lists an object that is not below it",
          class: .fail)
      }
      guard page.nextToken == nil || page.nextToken != token else {
        throw TaskFailure(
          code: .badResponse, message: "\(client.place(prefix)): the store lists the same page again", class: .retry)
      }
      empty = page.objects.isEmpty ? empty + 1 : 0
      guard empty <= Self.emptyPages else {
        throw TaskFailure(
          code: .badResponse, message: "\(client.place(prefix)): the store lists empty pages only", class: .retry)
      }
      if !page.objects.isEmpty {
        wasThere = true
        for object in page.objects {
          let storedAt = object.lastModified ?? Timestamp(microseconds: .min)
          // The store said that it had deleted it.
          if let earlier, storedAt <= earlier {
            sweep.uncount(object.size)
          }
          sweep.newest = max(sweep.newest ?? storedAt, storedAt)
        }
        try await delete(page.objects, client, &sweep)
        try await record(sweep.count)
      }
      token = page.nextToken
    } while token != nil
    return wasThere
  }

  /// Deletes the objects of one page. What the store does not delete although it is asked several times is noted.
  private func delete(_ objects: [S3ObjectList.Object], _ client: S3Client, _ sweep: inout Sweep) async throws {
    var left = objects[...]
    for number in 1...Self.retries where !left.isEmpty {
      if number > 1 { try await root.loop.sleep(for: .milliseconds(100 << number)) }
      let refused = try await refused(of: Array(left), client, &sweep)
      var again: [S3ObjectList.Object] = []
      for object in left {
        guard let failure = refused[Array(object.key.utf8)] else {
          sweep.count = sweep.count + Deletion.Count(files: 1, bytes: object.size)
          continue
        }
        if failure.class == .retry, number < Self.retries {
          again.append(object)
        } else {
          sweep.refused += 1
          if sweep.failure == nil || failure.class == .fail && sweep.failure?.class != .fail { sweep.failure = failure }
        }
      }
      left = again[...]
      ledger.progress(bytesDone: sweep.count.bytes, bytesTotal: nil)
    }
  }

  /// Asks for the deletion once. Returns the failures by the bytes of the keys, because a store keeps two spellings of one
  /// name as two objects.
  private func refused(
    of objects: [S3ObjectList.Object], _ client: S3Client, _ sweep: inout Sweep
  ) async throws -> [[UInt8]: TaskFailure] {
    if sweep.isBulk {
      var isBroken = false
      do {
        return try await retrying(client, objects[0].key) {
          isBroken = false
          do {
            return try await deleteInBulk(objects, client)
          } catch let error as S3Error {
            isBroken = error.status >= 500 && !error.isThrottling
            throw error
          }
        }
      } catch is BulkRefused {
        sweep.isBulk = false
      } catch is TaskFailure where isBroken {
        // One strange key may break the request for all of them.
      }
    }
    return try await deleteEach(objects, client)
  }

  /// The store deletes only single objects.
  private struct BulkRefused: Error {}

  private func deleteInBulk(
    _ objects: [S3ObjectList.Object], _ client: S3Client
  ) async throws -> [[UInt8]: TaskFailure] {
    var refused: [[UInt8]: TaskFailure] = [:]
    for start in stride(from: 0, to: objects.count, by: S3Deletion.limit) {
      let part = objects[start..<min(objects.count, start + S3Deletion.limit)]
      let xml = S3Deletion(part.map(\.key)).xml
      var call = S3Client.Call(method: .post, query: ["delete": ""])
      call.headers =
        spec.headers + [
          HeaderField(name: "Content-MD5", value: S3Checksum.contentMD5(xml)),
          HeaderField(name: "x-amz-checksum-crc32c", value: S3Checksum.crc32c(xml.withUnsafeBytes { crc32c($0) })),
          HeaderField(name: "Content-Type", value: "application/xml"),
        ]
      call.body = { CurlBytes(xml) }
      call.payloadHash = Hex.encode(digest(.sha256, of: xml))
      call.isSlow = true
      guard ledger.mayWrite else { throw CancellationError() }
      do {
        for object in try await client.document(S3DeleteResult.self, call).refused
        where !object.error.isAboutAbsentKey {
          refused[Array(object.key.utf8)] = client.failure(object.error, object.key)
        }
      } catch let error as S3Error where [400, 405, 501].contains(error.status) {
        throw BulkRefused()
      }
    }
    return refused
  }

  private func deleteEach(
    _ objects: [S3ObjectList.Object], _ client: S3Client
  ) async throws -> [[UInt8]: TaskFailure] {
    try await withThrowingTaskGroup(of: (String, TaskFailure?).self) { group in
      var refused: [[UInt8]: TaskFailure] = [:]
      for (number, object) in objects.enumerated() {
        if number >= Self.window, let (key, failure) = try await group.next() { refused[Array(key.utf8)] = failure }
        group.addTask {
          do {
            try await sendDelete(S3Client.Call(method: .delete, key: object.key, headers: spec.headers), client)
            return (object.key, nil)
          } catch {
            guard let failure = client.failure(error, object.key) as? TaskFailure, failure.class != .wait else {
              throw client.failure(error, object.key)
            }
            return (object.key, failure)
          }
        }
      }
      for try await (key, failure) in group { refused[Array(key.utf8)] = failure }
      return refused
    }
  }

  /// Sends a request again whose failure may pass.
  private func retrying<Answer: Sendable>(
    _ client: S3Client, _ key: String, _ body: () async throws -> Answer
  ) async throws -> Answer {
    try await root.loop.patiently(
      while: { ledger.mayWrite },
      { do { return try await body() } catch { throw client.failure(error, key) } })
  }
}

extension S3Error {
  /// Some stores answer so to a deletion of what is not there.
  fileprivate var isAboutAbsentKey: Bool { ["NoSuchKey", "NoSuchVersion"].contains(code) || losesUpload }

  /// As a gateway's page.
  fileprivate var isMute404: Bool { status == 404 && code == nil }
}
