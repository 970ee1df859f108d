import ReelhaulCurl
import ReelhaulDigest
import ReelhaulMessages
import ReelhaulSystem
import TaskCore

/// A tus 1.0.0 server (tus.io/protocols/resumable-upload): one upload that grows, or several that are concatenated where
/// the server offers that.
struct TusTarget: UploadTarget {
  /// Where uploads are created.
  let endpoint: CurlURL
  var lane: HTTPLane
  /// The task's own header fields and those of its credential. They go only to the endpoint's own server.
  let fields: [HeaderField]
  /// The name of the file, for the server.
  let name: String
  let parameters: UploadParameters
  let ledger: any TransferLedger

  /// The bytes of one request. A server may forget what it has of a request that was cut off.
  static let standardPiece: Int64 = 8 << 20
  /// Smaller files are not worth several uploads.
  private static let leastSegment: Int64 = 64 << 20
  private static let parallel: Int64 = 4
  /// Whether an earlier creation may have left an upload.
  let hasOrphan = Flag()
  /// The bytes that this run's creation of an upload has taken, until they are sent or found to be there.
  let taken = Lock<Int64>(0)

  var location: String { URLRedaction.redact(endpoint.text) }

  var server: String { endpoint.server }

  func plan(size: Int64) async throws -> UploadPlan {
    let server = try await capabilities()
    if let largest = server.largest, size > largest { throw TaskFailure.tooLarge(size, for: location, most: largest) }
    let count = server.extensions.contains("concatenation") ? max(1, min(Self.parallel, size / Self.leastSegment)) : 1
    return UploadPlan(
      segmentSize: max(1, size / count + min(1, size % count)), parallel: Int(count), keepsParts: true)
  }

  /// An upload gets a place of its own: nothing is ever replaced.
  func look(_ upload: UploadOrder) async throws -> UploadedObject? { nil }

  func proves(_ there: inout UploadedObject, _ upload: UploadOrder) async throws -> Bool { false }

  func resume(_ upload: UploadOrder, session: [UInt8]) async throws -> UploadStanding {
    let session = try Session(session)
    let count = upload.plan.segments(of: upload.size)
    guard session.urls.count == count else {
      hasOrphan.set()
      return .gone
    }
    var receipts: [Int: UploadReceipt] = [:]
    guard session.joined == nil else {
      for segment in 0..<count { receipts[segment] = UploadReceipt(segment: segment) }
      return .open(receipts)
    }
    var partial: [Int: Int64] = [:]
    for (segment, url) in session.urls.enumerated() {
      let size = Int64(upload.plan.range(of: segment, size: upload.size).count)
      guard let offset = try await offset(of: url, size: size) else {
        // It had taken the whole file.
        guard upload.mayBeThere, count == 1 else { return .gone }
        return .finished(UploadedObject(location: url, remark: Self.remark(session, and: Self.forgottenRemark)))
      }
      if offset == size { receipts[segment] = UploadReceipt(segment: segment) } else { partial[segment] = offset }
    }
    return .open(receipts, partial: partial)
  }

  /// tus does not list uploads: one whose URL nobody has heard of stays until the server lets it expire.
  func forget(_ plan: UploadPlan, since milliseconds: Int64) async throws { hasOrphan.set() }

  func kept(of segment: Int, of upload: UploadOrder, session: [UInt8]) async throws -> Int64? {
    let session = try Session(session)
    return try await offset(
      of: session.urls[segment], size: Int64(upload.plan.range(of: segment, size: upload.size).count))
  }

  func send(_ segment: UploadSegment, of upload: UploadOrder, session: [UInt8]) async throws -> UploadReceipt {
    let session = try Session(session)
    let url = session.urls[segment.number]
    // What it has sent counts until the server's answer does.
    var body: UploadBody?
    var offset = max(
      segment.offset,
      taken.withLock { there in
        defer { there = 0 }
        return there
      })
    if offset == segment.range.upperBound, !segment.range.isEmpty { return UploadReceipt(segment: segment.number) }
    // An empty file has one request too, with which some servers make the file.
    repeat {
      let source = upload.body.source
      let piece = source.piece(
        at: offset, of: segment.range, most: parameters.partSize ?? max(Self.standardPiece, source.block))
      // The last byte finishes the upload.
      if piece.upperBound == segment.range.upperBound { try await source.check() }
      var headers = headers(for: url)
      headers.append(("Upload-Offset", "\(offset - segment.range.lowerBound)"))
      headers.append(("Content-Type", "application/offset+octet-stream"))
      let request = CurlRequest(.patch, url: url, headers: headers, lowSpeed: .upload)
      let answer: CurlAnswer
      (body, answer) =
        session.hashes
        ? try await lane.held.holding(piece, of: source, in: lane.name, for: CurlURL(url)?.server ?? url) { bytes in
          try await hashed(request, bytes, until: piece.upperBound, of: upload)
        }
        : try await sent(request, upload.body.streaming(piece), until: piece.upperBound)
      // Others have made it already, and take nothing more.
      if piece.isEmpty, [400, 403, 404, 405, 409, 410, 415].contains(answer.status) { break }
      do {
        offset = try next(answer, piece, of: segment, url: url)
      } catch let failure as TaskFailure {
        throw UploadInterrupted(failure, before: piece.upperBound)
      }
      withExtendedLifetime(body) {}
      body = nil
      try await segment.kept(offset - segment.range.lowerBound)
    } while offset < segment.range.upperBound
    return UploadReceipt(segment: segment.number)
  }

  /// Not on the loop, which must not wait for it: a piece may have a gibibyte.
  func checksum(_ bytes: ArraySlice<UInt8>) async throws -> (name: String, value: String) {
    ("Upload-Checksum", "sha256 \(Base64.encode(try await lane.files.run { digest(.sha256, of: bytes) }))")
  }

  private func hashed(
    _ request: CurlRequest, _ bytes: ArraySlice<UInt8>, until end: Int64, of upload: UploadOrder
  ) async throws -> (UploadBody, CurlAnswer) {
    var request = request
    request.headers.append(try await checksum(bytes))
    return try await sent(request, upload.body.holding(bytes), until: end)
  }

  private func sent(
    _ request: CurlRequest, _ body: UploadBody, until end: Int64
  ) async throws -> (UploadBody, CurlAnswer) {
    var request = request
    request.body = body
    defer { body.release() }
    do {
      return (body, try await lane.answer(request))
    } catch let failure as TaskFailure {
      throw body.failure ?? UploadInterrupted(failure, before: end)
    } catch {
      throw body.failure ?? error
    }
  }

  func finish(_ upload: UploadOrder, session: [UInt8], receipts: [UploadReceipt]) async throws -> UploadedObject {
    var session = try Session(session)
    if session.urls.count > 1 {
      if session.joined == nil { try await join(&session, upload) }
      return try await joined(session, upload)
    }
    var object = UploadedObject(size: upload.size, verified: .size)
    object.location = session.urls.first ?? endpoint.text
    object.remark = Self.remark(session)
    guard let offset = try await offset(of: session.urls.first ?? endpoint.text, size: upload.size) else {
      object.size = nil
      object.verified = .none
      object.remark = Self.remark(session, and: Self.forgottenRemark)
      return object
    }
    guard offset == upload.size else {
      // If it is gone in the next run, it was never whole.
      try await upload.publishing(false)
      throw Self.short(object.location ?? "", offset, upload)
    }
    return object
  }

  static func short(_ url: String, _ offset: Int64, _ upload: UploadOrder) -> TaskFailure {
    TaskFailure(
      code: .sizeMismatch, message: "\(URLRedaction.redact(url)) has \(offset) of \(upload.size) bytes", class: .retry)
  }

  /// What is not sure, because tus does not tell which uploads a server has, and each has a place of its own.
  static func remark(_ session: Session, and other: String? = nil) -> String? {
    var remarks: [String] = []
    if session.isAgain {
      remarks.append("the answer to an earlier end of this upload was lost: the server may have the file a second time")
    }
    if session.hasOrphan {
      remarks.append(
        "the creation of an upload was not confirmed: the server may keep an unfinished one until it lets it expire"
      )
    }
    if let other { remarks.append(other) }
    return remarks.isEmpty ? nil : remarks.joined(separator: "; ")
  }

  /// Some servers forget an upload as soon as they have taken its last byte.
  static let forgottenRemark = "the server took the whole file, and does not show it any more"

  @discardableResult
  func abort(session: [UInt8]) async throws -> Bool {
    let session = try Session(session)
    if session.hasOrphan { hasOrphan.set() }
    guard session.terminates else { return false }
    return try await terminated(session.urls + [session.joined].compactMap(\.self)).hasEnded
  }
}
