import ReelhaulCurl
import ReelhaulDigest
import ReelhaulMessages
import ReelhaulSystem
import TaskCore

/// One PUT or POST of the whole file to a URL, which may be presigned. It cannot be resumed.
///
/// A server may keep what came of a request that was cut off, and plain HTTP does not tell whose a file is. Its bytes do:
/// those of the source, or the first of them, are this task's own wherever it may have left some.
///
/// A POST is not idempotent. Once the whole file has been sent, the lost answer to it ends the task for good, unless the
/// task's own `Idempotency-Key` says that the server tells a second request from a new one. That holds for the same file
/// only: the server would answer another version as it has answered the first.
struct PutTarget: UploadTarget {
  let url: CurlURL
  let lane: HTTPLane
  let method: CurlRequest.Method
  /// The task's own header fields and those of its credential.
  let fields: [HeaderField]
  let contentType: String?
  /// Whether the server is given the SHA-256 where it is known.
  var tellsDigest = true
  private let hasSent = Flag()
  /// Whether a POST of this run has brought the whole file, and nobody knows what became of it.
  private let isInDoubt = Flag()

  private static let redirects = 5
  /// The statuses that say that the file is stored. Other successes speak of something else, such as 207 of many files.
  private static let stored = [200, 201, 202, 203, 204, 205]
  private static let idempotencyKey = "idempotency-key"

  var location: String { URLRedaction.redact(url.text) }

  var server: String { url.server }

  func plan(size: Int64) async throws -> UploadPlan {
    UploadPlan(
      segmentSize: max(1, size), parallel: 1, publishesAtOnce: true, isSentOnce: method == .post)
  }

  var knowsRepeats: Bool { fields.contains { $0.name.lowercased() == Self.idempotencyKey } }

  func look(_ upload: UploadOrder) async throws -> UploadedObject? {
    let there = try await look(at: start)
    // What may be replaced is read by ``proves(_:_:)`` alone.
    guard upload.mayBeThere || upload.beginsAnew, let there, upload.ifExists != .replace else { return there }
    let read = try await read(start, upload)
    if let read, read.owner != nil { return read }
    // What cannot be read may be this task's own, and so may others be after the source has changed.
    let isOthers = read != nil && upload.generation == 0 && !upload.beginsAnew
    guard upload.ifExists == .skip, isOthers else { throw occupied(start) }
    return there
  }

  /// No answer to a HEAD says whose bytes are there: they are read.
  func proves(_ there: inout UploadedObject, _ upload: UploadOrder) async throws -> Bool {
    if there.owner == nil, let read = try await read(start, upload) { there = read }
    return there.owner != nil && there.size == upload.size
  }

  private func look(at first: Place) async throws -> UploadedObject? {
    try await head(of: first) { place in
      try await call(CurlRequest(.head, url: place.url, headers: headers(for: place))).head
    }.map { UploadedObject(size: $0.size, etag: $0["etag"]) }
  }

  /// Asks with `ask` what is at a place. Returns the head of the answer; nil if nothing is there, or if it is not told.
  private func head(of first: Place, _ ask: (Place) async throws -> CurlHead) async throws -> CurlHead? {
    // A presigned URL is for one method alone.
    guard method == .put, !isPresigned else { return nil }
    var place = first
    for _ in 0...Self.redirects {
      let head = try await ask(place)
      switch head.status {
      case 200..<300: return head
      // The file goes there, too. Other redirects are not followed with a PUT.
      case 307, 308: place = try redirected(head, from: place)
      // The server cannot tell now: a file that is there must not be replaced for that.
      case 408, 425, 429, 500, 502, 503, 504: throw TaskFailure(refusing: head, url: url.text)
      default: return nil
      }
    }
    throw Place.redirectLoop(location, limit: Self.redirects)
  }

  private var start: Place { Place(url: url.text, isAtOrigin: true) }

  /// Where an answer sends the request.
  private func redirected(_ head: CurlHead, from place: Place) throws -> Place {
    try place.redirected(to: head["location"] ?? "", from: url, called: location)
  }

  func begin(_ upload: UploadOrder) async throws -> [UInt8] { Array("{}".utf8) }

  /// It begins anew, with a look at what the former request has left.
  func resume(_ upload: UploadOrder, session: [UInt8]) async throws -> UploadStanding {
    .gone
  }

  func forget(_ plan: UploadPlan, since milliseconds: Int64) async throws {}

  func send(_ segment: UploadSegment, of upload: UploadOrder, session: [UInt8]) async throws -> UploadReceipt {
    var (place, replaces) = (start, upload.replaces)
    // Before the first request the run has looked.
    var looks = hasSent.testAndSet()
    for _ in 0...Self.redirects {
      if looks, upload.ifExists != .replace, try await look(at: place) != nil {
        let there = try await ownFile(at: place, upload)
        if there.size == upload.size { return UploadReceipt(segment: segment.number, verified: .sha256) }
        replaces = there.etag ?? "*"
      }
      let answer = try await answer(to: request(to: place, upload, replaces: replaces), segment, upload)
      guard [307, 308].contains(answer.status) else {
        return try await receipt(for: answer, segment, upload, at: place)
      }
      place = try redirected(answer.head, from: place)
      // A look at the first place need not have led here.
      looks = true
    }
    throw Place.redirectLoop(location, limit: Self.redirects)
  }

  /// The request that brings the file, still without its body.
  ///
  /// - Parameter replaces: The entity tag of what alone may be replaced; nil if nothing may be there.
  private func request(to place: Place, _ upload: UploadOrder, replaces: String?) -> CurlRequest {
    var more: [(name: String, value: String)] = []
    if let type = contentType ?? (signsType ? nil : "application/octet-stream") { more.append(("Content-Type", type)) }
    if tellsDigest, let sha256 = upload.sha256 { more.append(("Repr-Digest", "sha-256=:\(Base64.encode(sha256)):")) }
    if upload.ifExists != .replace, method == .put, !isPresigned {
      more.append(replaces.map { ("If-Match", Self.strong($0)) } ?? ("If-None-Match", "*"))
    }
    if method == .post, !knowsRepeats {
      more.append(("Idempotency-Key", "\"\(upload.task)-\(upload.owner.version ?? "")\""))
    }
    var request = CurlRequest(method, url: place.url, headers: headers(for: place) + more, lowSpeed: .upload)
    request.isSentOnce = method == .post
    return request
  }

  /// Sends the request with its body. Of a file that is sent once, records whether the server may have it.
  private func answer(
    to request: CurlRequest, _ segment: UploadSegment, _ upload: UploadOrder
  ) async throws -> CurlAnswer {
    let isSentOnce = upload.plan.isSentOnce
    // With the last block the file is public.
    let publish = { @Sendable [loop = lane.loop] in
      try await loop.patiently(for: UploadBody.patience) { try await upload.body.source.check() }
      // A request that is over publishes nothing any more.
      try Task.checkCancellation()
      if isSentOnce { try await upload.publishing(true) }
    }
    let body = upload.body.streaming(segment.range, beforeLast: publish)
    if segment.range.isEmpty { try await publish() }
    var request = request
    request.body = body
    let answer: CurlAnswer
    do {
      answer = try await call(request)
    } catch {
      throw isSentOnce ? await doubt(body, upload, error) : body.failure ?? error
    }
    guard isSentOnce, !Self.stored.contains(answer.status) else { return answer }
    if body.isSent, Self.leavesPostOpen(answer.status) {
      if !knowsRepeats { throw TaskFailure.answerLost(at: location, "status \(answer.status)") }
      isInDoubt.set()
    } else {
      try await broughtNothing(upload)
    }
    return answer
  }

  /// What an answer that is not a redirect says of the file.
  private func receipt(
    for answer: CurlAnswer, _ segment: UploadSegment, _ upload: UploadOrder, at place: Place
  ) async throws -> UploadReceipt {
    switch answer.status {
    case _ where Self.stored.contains(answer.status):
      let made = made(answer.head, at: place)
      return UploadReceipt(
        segment: segment.number, etag: answer.head["etag"] ?? "",
        verified: try await proof(answer, upload, at: place, file: made?.text ?? place.url),
        location: made.map { URLRedaction.redact($0.text) })
    case 412 where upload.ifExists != .replace:
      guard try await ownFile(at: place, upload).size == upload.size else {
        throw TaskFailure.badResponse("it has a part of the file, which came meanwhile", url: place.url)
      }
      return UploadReceipt(segment: segment.number, verified: .sha256)
    case 200..<300:
      throw TaskFailure.badResponse("status \(answer.status) does not say that the file is stored", url: place.url)
    default:
      var failure = TaskFailure(refusing: answer.head, url: url.text)
      // Each attempt sends the whole file.
      if failure.class == .wait { failure.class = .retry }
      throw failure
    }
  }

  /// Where a POST has made the file, if its answer says so.
  private func made(_ answer: CurlHead, at place: Place) -> CurlURL? {
    guard method == .post, answer.status == 201, let location = answer["location"] else { return nil }
    return CurlURL(place.url)?.resolving(location)
  }

  /// A file that is in the way, if an earlier request of this task has left it: its answer was lost, or it was cut off;
  /// libcurl repeats one, too.
  private func ownFile(at place: Place, _ upload: UploadOrder) async throws -> UploadedObject {
    if let there = try await read(place, upload), there.owner != nil { return there }
    // It is looked at again, and skipped.
    if upload.ifExists == .skip, try await look(at: start) != nil { throw UploadGone() }
    throw occupied(place)
  }

  private func occupied(_ place: Place) -> TaskFailure {
    TaskFailure(
      code: .destinationExists,
      message: """
        \(URLRedaction.redact(place.url))\(place.url == url.text ? "" : ", where \(location) redirects to,") exists \
        already, and its bytes are others or cannot be read: use --if-exists
        """, class: .fail)
  }

  /// A weak tag meets no condition.
  private static func strong(_ etag: String) -> String { etag.hasPrefix("W/") ? "*" : etag }

  func finish(_ upload: UploadOrder, session: [UInt8], receipts: [UploadReceipt]) async throws -> UploadedObject {
    let receipt = receipts.first
    var there: UploadedObject?
    // The answer to the request said that the file is there.
    do {
      there = try await look(at: start)
      // A cache, or a server that makes its answers, may tell a wrong length. The bytes tell more.
      if let size = there?.size, size != upload.size, let read = try await read(start, upload), read.owner != nil {
        there = read
      }
    } catch is TaskFailure {}
    var object = there ?? UploadedObject(etag: receipt.flatMap { $0.etag.isEmpty ? nil : $0.etag })
    object.location = receipt?.location
    if let verified = receipt?.verified {
      object.verified = verified
    } else if object.verified == .none, object.size != nil {
      object.verified = .size
    }
    if upload.ifExists != .replace {
      // Not every server looks at If-None-Match, and a presigned URL does not let it be sent.
      object.remark =
        "no overwrite is not guaranteed: plain HTTP does not tell whether the server looks for a file first"
    }
    return object
  }

  func abort(session: [UInt8]) async throws -> Bool { false }

  /// Whether the answer to a POST, which had its whole body, leaves open what became of that. A redirect may be thanks, or
  /// lead to a page for signing in.
  private static func leavesPostOpen(_ status: Int) -> Bool {
    isUntold(status) || (200..<400).contains(status) && ![307, 308].contains(status)
  }

  /// What it means that a request which must not be repeated got no answer.
  private func doubt(_ body: UploadBody, _ upload: UploadOrder, _ error: any Error) async -> any Error {
    if let failure = body.failure { return failure }
    guard let failure = error as? TaskFailure else { return error }
    // An empty body is sent with the head.
    let isSent = body.isSent && (upload.size > 0 || Self.afterRequest.contains(failure.code.rawValue))
    if isSent {
      if !knowsRepeats { return TaskFailure.answerLost(at: location, failure.code.rawValue) }
      isInDoubt.set()
    } else {
      // If this cannot be recorded, the next run has the doubt.
      try? await broughtNothing(upload)
    }
    return failure
  }

  /// The server has not taken the file with this request; one before may have brought it.
  private func broughtNothing(_ upload: UploadOrder) async throws {
    if !upload.mayBeThere, !isInDoubt.isSet { try await upload.publishing(false) }
  }

  private static let afterRequest = Set(
    [CurlError.Code.noResponse, .cut, .timedOut, .receiveFailed, .badResponse, .canceled].map(\.name))

  // MARK: Requests

  var isPresigned: Bool { ["signature=", "sig=", "x-amz-", "x-goog-"].contains { query.contains($0) } }

  /// Whether the URL has a signature of the media type, also of none: that of version 2, which botocore still makes.
  private var signsType: Bool { query.split(separator: "&").contains { $0.hasPrefix("signature=") } }

  private var query: String { url.text.split(separator: "?", maxSplits: 1).dropFirst().first?.lowercased() ?? "" }

  private func headers(for place: Place) -> [(name: String, value: String)] {
    place.isAtOrigin ? fields.map { ($0.name, $0.value) } : []
  }

  private func call(_ request: CurlRequest) async throws -> CurlAnswer {
    defer { (request.body as? UploadBody)?.release() }
    return try await lane.answer(request)
  }

  /// Reads what is at a place; nil if that cannot be read. It has this owner if its bytes are those of the source, or the
  /// first of them.
  func read(_ first: Place, _ upload: UploadOrder) async throws -> UploadedObject? {
    var hasher = BodyHasher(limit: upload.size)
    let head = try await head(of: first) { place in
      hasher = BodyHasher(limit: upload.size)
      let request = CurlRequest(url: place.url, headers: headers(for: place), lowSpeed: .upload)
      do throws(CurlError) {
        try await lane.perform(request, to: place.server, handler: hasher)
      } catch {
        // The hasher has seen enough.
        guard error.code == .aborted else { throw TaskFailure(error, url: place.url) }
      }
      return hasher.head
    }
    guard let head, head.status == 200 else { return nil }
    var there = UploadedObject(size: head.size, etag: head["etag"])
    if let (size, seen) = hasher.all, try await sourceDigest(.sha256, upload, first: size) == seen {
      (there.size, there.owner) = (size, upload.owner)
      if size == upload.size { there.verified = .sha256 }
    }
    return there
  }

  func sourceDigest(
    _ algorithm: DigestAlgorithm, _ upload: UploadOrder, first size: Int64? = nil
  ) async throws -> [UInt8] {
    var state = DigestState(algorithm)
    try await upload.body.source.readAll(first: size) { state.update($0) }
    return state.finish()
  }
}

/// Hashes the body of a 200, and ends where it is longer than the source.
// @unchecked: used only on the client's loop, and after its end by the caller.
private final class BodyHasher: CurlHandler, @unchecked Sendable {
  private let limit: Int64
  private var state = DigestState(.sha256)
  private var count: Int64 = 0
  private(set) var head = CurlHead(status: 0)

  init(limit: Int64) {
    self.limit = limit
  }

  /// Of the whole body; nil if it was longer.
  var all: (size: Int64, digest: [UInt8])? {
    head.status == 200 && max(head.size ?? 0, count) <= limit ? (count, state.finish()) : nil
  }

  func receive(head: CurlHead, of transfer: CurlTransfer) -> CurlVerdict {
    self.head = head
    return head.status == 200 && head.size ?? 0 <= limit ? .continue : .abort
  }

  func receive(body: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> CurlVerdict {
    count += Int64(body.count)
    guard count <= limit else { return .abort }
    state.update(body)
    return .continue
  }
}
