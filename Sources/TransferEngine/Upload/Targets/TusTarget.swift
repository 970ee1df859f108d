import ReelhaulCodec
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
  let lane: HTTPLane
  /// The task's own header fields and those of its credential. They go only to the endpoint's own server.
  let fields: [HeaderField]
  /// The name of the file, for the server.
  let name: String
  let parameters: UploadParameters
  let ledger: any TransferLedger

  /// The bytes of one request. A server may forget what it has of a request that was cut off.
  private static let standardPiece: Int64 = 8 << 20
  /// Smaller files are not worth several uploads.
  private static let leastSegment: Int64 = 64 << 20
  private static let parallel: Int64 = 4
  /// How often a joined upload is looked at until it is whole: for about 15 seconds.
  private static let looks = 11

  fileprivate struct Session {
    /// One URL for each segment.
    var urls: [String] = []
    /// `Tus-Checksum-Algorithm` that this client knows.
    var hashes = false
    /// Whether an upload can be given up.
    var terminates = false
    /// Whether a former upload of the same file may have ended, whose answer was lost.
    var isAgain = false
    /// Whether the answer to a creation may have been lost.
    var hasOrphan = false
    /// The upload that the others were joined to.
    var joined: String?
    /// Whether the server has said that it lacks bytes.
    var isShort = false
  }

  /// Whether an earlier creation may have left an upload.
  private let hasOrphan = Lock(false)

  var location: String { URLRedaction.redact(endpoint.text) }

  func plan(size: Int64) async throws -> UploadPlan {
    let server = try await capabilities()
    if let largest = server.largest, size > largest { throw TaskFailure.tooLarge(size, for: location, most: largest) }
    let count = server.extensions.contains("concatenation") ? max(1, min(Self.parallel, size / Self.leastSegment)) : 1
    return UploadPlan(
      segmentSize: max(1, size / count + min(1, size % count)), parallel: Int(count), keepsParts: true)
  }

  /// An upload gets a place of its own: nothing is ever replaced.
  func look(_ upload: UploadOrder) async throws -> UploadedObject? { nil }

  func begin(_ upload: UploadOrder) async throws -> [UInt8] {
    let server = try await capabilities()
    guard server.extensions.contains("creation") else {
      throw TaskFailure(code: .destinationInvalid, message: "\(location) does not create uploads", class: .fail)
    }
    var session = Session(
      hashes: parameters.checksum != UploadParameters.Checksum.none && server.extensions.contains("checksum")
        && server.hashes.contains("sha256"),
      terminates: server.extensions.contains("termination"), isAgain: upload.mayBeThere,
      hasOrphan: hasOrphan.withLock { $0 })
    let count = upload.plan.segments(of: upload.size)
    for segment in 0..<count {
      let size = upload.plan.range(of: segment, size: upload.size).count
      var headers = [(name: "Upload-Length", value: "\(size)")]
      if count > 1 { headers.append(("Upload-Concat", "partial")) } else { headers.append(metadata(upload)) }
      do {
        session.urls.append(try await create(headers))
        if count > 1, segment < count - 1 { try await upload.record(session.json) }
      } catch {
        try? await abort(session: session.json)
        throw error
      }
    }
    return session.json
  }

  func resume(_ upload: UploadOrder, session: [UInt8], source: any UploadSource) async throws -> UploadStanding {
    let session = try Session(session)
    let count = upload.plan.segments(of: upload.size)
    guard session.urls.count == count else {
      hasOrphan.withLock { $0 = true }
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
        return upload.mayBeThere && count == 1 ? .finished(Self.forgotten(url)) : .gone
      }
      if offset == size { receipts[segment] = UploadReceipt(segment: segment) } else { partial[segment] = offset }
    }
    return .open(receipts, partial: partial)
  }

  /// tus does not list uploads: one whose URL nobody has heard of stays until the server lets it expire.
  func forget(_ plan: UploadPlan, since milliseconds: Int64) async throws { hasOrphan.withLock { $0 = true } }

  func kept(of segment: Int, of upload: UploadOrder, session: [UInt8]) async throws -> Int64? {
    let session = try Session(session)
    return try await offset(
      of: session.urls[segment], size: Int64(upload.plan.range(of: segment, size: upload.size).count))
  }

  func send(_ segment: UploadSegment, of upload: UploadOrder, session: [UInt8]) async throws -> UploadReceipt {
    let session = try Session(session)
    let url = session.urls[segment.number]
    // They count as sent as long as they are there.
    var bodies: [UploadBody] = []
    var offset = segment.offset
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
      let request = CurlRequest(.patch, url: url, headers: headers, lowSpeed: .init(bytesPerSecond: 512, seconds: 60))
      let (body, answer) =
        session.hashes
        ? try await lane.held.holding(piece, of: source, for: CurlURL(url)?.server ?? url) { bytes in
          try await hashed(request, bytes, until: piece.upperBound, of: upload)
        }
        : try await sent(request, upload.body.streaming(piece), until: piece.upperBound)
      bodies.append(body)
      // Others have made it already, and take nothing more.
      if piece.isEmpty, [400, 403, 404, 405, 409, 410, 415].contains(answer.status) { break }
      do {
        offset = try next(answer, piece, of: segment, url: url)
      } catch let failure as TaskFailure {
        throw UploadInterrupted(failure, before: piece.upperBound)
      }
    } while offset < segment.range.upperBound
    return withExtendedLifetime(bodies) { UploadReceipt(segment: segment.number) }
  }

  private func hashed(
    _ request: CurlRequest, _ bytes: ArraySlice<UInt8>, until end: Int64, of upload: UploadOrder
  ) async throws -> (UploadBody, CurlAnswer) {
    var request = request
    request.headers.append(("Upload-Checksum", "sha256 \(Base64.encode(digest(.sha256, of: bytes)))"))
    return try await sent(request, upload.body.holding(bytes), until: end)
  }

  private func sent(
    _ request: CurlRequest, _ body: UploadBody, until end: Int64
  ) async throws -> (UploadBody, CurlAnswer) {
    var request = request
    request.body = body
    defer { body.release() }
    do {
      return (body, try await lane.answer(request, pulse: ledger.pulse))
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

  /// Lets the server make one upload of the parts, and records it: another run must not join them again.
  private func join(_ session: inout Session, _ upload: UploadOrder) async throws {
    if upload.mayBeThere { session.isAgain = true }
    guard ledger.mayWrite else { throw CancellationError() }
    let parts = session.urls.joined(separator: " ")
    do {
      session.joined = try await create(
        [("Upload-Concat", "final;\(parts)"), metadata(upload)], takes: .seconds(600 + upload.size >> 22))
    } catch let failure as TaskFailure where [.http(400), .http(404), .http(410)].contains(failure.code) {
      // It may have lost something of a part since it was sent.
      for segment in session.urls.indices {
        let size = upload.plan.range(of: segment, size: upload.size).count
        guard try await offset(of: session.urls[segment], size: Int64(size)) == Int64(size) else {
          throw UploadIncomplete()
        }
      }
      throw failure
    }
    try await upload.record(session.json)
  }

  /// What became of the joined upload. Its parts are not needed any more once the server has said that it is whole.
  private func joined(_ session: Session, _ upload: UploadOrder) async throws -> UploadedObject {
    var session = session
    let url = session.joined ?? endpoint.text
    var object = UploadedObject(size: upload.size, location: url, verified: .size)
    for number in 0..<Self.looks {
      switch try await standing(of: url, size: upload.size) {
      case .unknown where session.isShort:
        try await upload.publishing(false)
        throw UploadGone()
      case .unknown:
        object.size = nil
        object.verified = .none
        object.remark = Self.remark(session, and: Self.forgottenRemark)
        return object
      case .at(let offset) where offset < upload.size:
        session.isShort = true
        try await upload.record(session.json)
        throw Self.short(url, offset, upload)
      case .at:
        let isLeft = try await !removed(session.urls)
        object.remark = Self.remark(
          session, and: isLeft ? "the server keeps the parts beside the file until it lets them expire" : nil)
        return object
      case .joining: try await lane.loop.sleep(for: .milliseconds(min(2000, 100 << number)))
      }
    }
    guard !session.isShort else { throw TaskFailure.badResponse("it has no Upload-Offset any more", url: url) }
    object.size = nil
    object.verified = .none
    object.remark = Self.remark(session, and: "the server does not say whether it has joined the parts yet")
    return object
  }

  /// Whether the parts of a joined upload are gone.
  private func removed(_ urls: [String]) async throws -> Bool {
    do {
      return try await terminated(urls)
    } catch is TaskFailure {
      // Of a run that is stopped, the next one ends them.
      try Task.checkCancellation()
      return false
    }
  }

  private static func short(_ url: String, _ offset: Int64, _ upload: UploadOrder) -> TaskFailure {
    TaskFailure(
      code: .sizeMismatch, message: "\(URLRedaction.redact(url)) has \(offset) of \(upload.size) bytes", class: .retry)
  }

  /// What is not sure, because tus does not tell which uploads a server has, and each has a place of its own.
  private static func remark(_ session: Session, and other: String? = nil) -> String? {
    var remarks: [String] = []
    if session.isAgain {
      remarks.append("the answer to an earlier end of this upload was lost: the server may have the file a second time")
    }
    if session.hasOrphan {
      remarks.append(
        "the answer to the creation of an upload was lost: the server may keep an empty one until it lets it expire")
    }
    if let other { remarks.append(other) }
    return remarks.isEmpty ? nil : remarks.joined(separator: "; ")
  }

  /// Some servers forget an upload as soon as they have taken its last byte.
  private static func forgotten(_ url: String) -> UploadedObject {
    UploadedObject(location: url, remark: forgottenRemark)
  }

  private static let forgottenRemark = "the server took the whole file, and does not show it any more"

  func abort(session: [UInt8]) async throws {
    let session = try Session(session)
    guard session.terminates else { return }
    _ = try await terminated(session.urls + [session.joined].compactMap(\.self))
  }

  /// Ends uploads; false if the server refuses it for one of them. Throws ``TaskFailure`` if it cannot do it now.
  ///
  /// A URL on another server is only the word of this one, and may name anything there. It must answer as an upload first.
  private func terminated(_ urls: [String]) async throws -> Bool {
    var isDone = true
    for url in urls {
      var answer = try await ask(isOwn(url) ? .delete : .head, url)
      if !isOwn(url), answer.isSuccess {
        let isUpload = answer.head["tus-resumable"] != nil && Self.marks.contains { answer.head[$0] != nil }
        guard isUpload else {
          isDone = false
          continue
        }
        answer = try await ask(.delete, url)
      }
      if [403, 405].contains(answer.status) { isDone = false }
      guard answer.isSuccess || [403, 404, 405, 410].contains(answer.status) else {
        throw TaskFailure(refusing: answer.head, url: url)
      }
    }
    return isDone
  }

  /// What tells an upload: one that is still being joined has no offset.
  private static let marks = ["upload-offset", "upload-concat"]

  // MARK: Requests

  private func ask(_ method: CurlRequest.Method, _ url: String) async throws -> CurlAnswer {
    var request = CurlRequest(method, url: url, headers: headers(for: url))
    // What the run of another owner goes on with is not ended. What a run gives up that has lost its task already is an
    // upload that nobody else knows of.
    if method == .delete, ledger.mayWrite { request.mayBegin = { [ledger] in ledger.mayWrite } }
    return try await lane.answer(request, pulse: ledger.pulse)
  }

  private struct Capabilities {
    var extensions: Set<String> = []
    var hashes: Set<String> = []
    var largest: Int64?
  }

  private func capabilities() async throws -> Capabilities {
    let answer = try await ask(.options, endpoint.text)
    // Servers need not tell: then what is not there is found out when it is needed.
    if [404, 405, 501].contains(answer.status) { return Capabilities(extensions: ["creation", "termination"]) }
    guard answer.isSuccess else { throw TaskFailure(refusing: answer.head, url: endpoint.text) }
    func words(_ name: String) -> Set<String> {
      Set((answer.head[name] ?? "").lowercased().split { $0 == "," || $0 == " " }.map(String.init))
    }
    guard answer.head["tus-version"] == nil || words("tus-version").contains("1.0.0") else {
      throw TaskFailure(code: .destinationInvalid, message: "\(location) does not speak tus 1.0.0", class: .fail)
    }
    return Capabilities(
      extensions: words("tus-extension"), hashes: words("tus-checksum-algorithm"),
      largest: answer.head["tus-max-size"].flatMap { Int64($0) })
  }

  /// The URL of a new upload.
  ///
  /// - Parameter deadline: For one that the server makes of others: it may copy all bytes before it answers.
  private func create(
    _ more: [(name: String, value: String)], takes deadline: Duration? = nil
  ) async throws -> String {
    var request = CurlRequest(.post, url: endpoint.text, headers: headers(for: endpoint.text) + more)
    if let deadline { (request.lowSpeed, request.deadline) = (nil, deadline) }
    request.isSentOnce = true
    request.mayBegin = { [ledger] in ledger.mayWrite }
    let answer = try await lane.answer(request, pulse: ledger.pulse)
    guard answer.status == 201 else { throw TaskFailure(refusing: answer.head, url: endpoint.text) }
    guard let url = answer.head["location"].flatMap(endpoint.resolving), ["http", "https"].contains(url.scheme),
      !url.hasCredentials
    else {
      throw TaskFailure.badResponse("the new upload has no URL", url: endpoint.text)
    }
    guard endpoint.scheme == "http" || url.scheme == "https" else {
      throw TaskFailure(
        code: .redirectRefused, message: "\(location) gives its upload a URL without TLS, which is never used",
        class: .fail)
    }
    return url.text
  }

  private enum Standing {
    case unknown
    case at(Int64)
    /// The parts are being joined: it has no offset until this is done.
    case joining
  }

  /// Where the upload goes on; nil if the server does not know it.
  private func offset(of url: String, size: Int64) async throws -> Int64? {
    switch try await standing(of: url, size: size) {
    case .unknown: nil
    case .at(let offset): offset
    case .joining: throw TaskFailure.badResponse("it has no Upload-Offset", url: url)
    }
  }

  private func standing(of url: String, size: Int64) async throws -> Standing {
    let answer = try await ask(.head, url)
    if [403, 404, 410].contains(answer.status) { return .unknown }
    guard answer.isSuccess else { throw Self.failure(answer, url: url) }
    let length = answer.head["upload-length"].flatMap { Int64($0) }
    guard let text = answer.head["upload-offset"] else { return .joining }
    guard let offset = Int64(text), offset >= 0 else {
      throw TaskFailure.badResponse("its Upload-Offset is not a number", url: url)
    }
    guard length ?? size == size, offset <= size else {
      throw TaskFailure(
        code: .sizeMismatch,
        message: "\(URLRedaction.redact(url)) is at \(offset) of \(length ?? size) bytes, but \(size) were to be sent",
        class: .fail)
    }
    return .at(offset)
  }

  /// Where the upload goes on after a piece.
  private func next(
    _ answer: CurlAnswer, _ piece: Range<Int64>, of segment: UploadSegment, url: String
  ) throws -> Int64 {
    if [404, 410].contains(answer.status) { throw UploadGone() }
    guard answer.isSuccess else { throw Self.failure(answer, url: url) }
    guard let told = answer.head["upload-offset"].flatMap({ Int64($0) }), told >= 0 else {
      throw TaskFailure.badResponse("it has no Upload-Offset", url: url)
    }
    guard told <= piece.upperBound - segment.range.lowerBound else {
      throw TaskFailure(
        code: .uploadAhead,
        message:
          "\(URLRedaction.redact(url)) has more bytes than were sent: somebody else writes to it, or it is wrong",
        class: .fail)
    }
    let offset = segment.range.lowerBound + told
    // It may keep whole blocks only.
    guard offset > piece.lowerBound || piece.isEmpty else {
      throw TaskFailure.badResponse("it kept \(told) bytes only", url: url)
    }
    return offset
  }

  private static func failure(_ answer: CurlAnswer, url: String) -> TaskFailure {
    var failure = TaskFailure(refusing: answer.head, url: url)
    switch answer.status {
    // The offset is another one, or the bytes were damaged on the way: it is asked for.
    case 409, 460: failure.class = .retry
    // tusd ends a request when another one asks for the same upload, as a worker may that has just lost its lease.
    case 400 where String(decoding: answer.body, as: UTF8.self).contains("ERR_UPLOAD_INTERRUPTED"):
      failure.class = .retry
    // Some servers keep their lock for minutes after a connection was cut.
    case 423: failure.retryAfter = failure.retryAfter ?? 15
    // Often of a proxy before the server.
    case 413: failure.message += ": smaller requests (--part-size) may be let through"
    default: break
    }
    return failure
  }

  private func headers(for url: String) -> [(name: String, value: String)] {
    (isOwn(url) ? fields.map { ($0.name, $0.value) } : []) + [("Tus-Resumable", "1.0.0")]
  }

  /// Whether it is on the endpoint's own server.
  private func isOwn(_ url: String) -> Bool { CurlURL(url)?.isSameOrigin(as: endpoint) == true }

  private func metadata(_ upload: UploadOrder) -> (name: String, value: String) {
    let pairs = [
      ("filename", name), ("filetype", parameters.contentType ?? "application/octet-stream"),
      ("reelhaul-task", "\(upload.task)"),
      ("reelhaul-generation", "\(upload.generation)"),
    ]
    let own = parameters.metadata.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    // A name must be there once.
    let others = pairs.filter { parameters.metadata[$0.0] == nil }
    return ("Upload-Metadata", (others + own).map { "\($0) \(Base64.encode($1.utf8))" }.joined(separator: ","))
  }
}

extension TusTarget.Session {
  fileprivate init(_ json: [UInt8]) throws {
    do throws(DecodingFailure) {
      self = try JSONReader.read(json) { reader throws(DecodingFailure) in
        var session = TusTarget.Session()
        try reader.object { reader, name throws(DecodingFailure) in
          switch name {
          case "urls":
            try reader.array { reader, _ throws(DecodingFailure) in session.urls.append(try reader.string()) }
          case "hashes": session.hashes = try reader.bool()
          case "terminates": session.terminates = try reader.bool()
          case "again": session.isAgain = try reader.bool()
          case "orphan": session.hasOrphan = try reader.bool()
          case "joined": session.joined = try reader.string()
          case "short": session.isShort = try reader.bool()
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
        json.member("urls", urls)
        json.member("hashes", hashes)
        json.member("terminates", terminates)
        json.member("again", isAgain)
        if hasOrphan { json.member("orphan", true) }
        if let joined { json.member("joined", joined) }
        if isShort { json.member("short", true) }
      }
    }
  }
}
