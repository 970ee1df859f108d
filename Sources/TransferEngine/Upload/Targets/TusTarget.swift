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

  fileprivate struct Session {
    /// One URL for each segment.
    var urls: [String] = []
    /// `Tus-Checksum-Algorithm` that this client knows.
    var hashes = false
    /// Whether an upload can be given up.
    var terminates = false
    /// Whether a former upload of the same file may have ended, whose answer was lost.
    var isAgain = false
  }

  var location: String { URLRedaction.redact(endpoint.text) }

  func plan(size: Int64) async throws -> UploadPlan {
    let server = try await capabilities()
    if let largest = server.largest, size > largest {
      throw TaskFailure(
        code: .fileTooLarge, message: "\(location) takes at most \(largest) bytes, but the file has \(size)",
        class: .fail)
    }
    let count = server.extensions.contains("concatenation") ? max(1, min(Self.parallel, size / Self.leastSegment)) : 1
    return UploadPlan(
      segmentSize: max(1, (size + count - 1) / count), parallel: Int(count), keepsParts: true)
  }

  /// An upload gets a place of its own: nothing is ever replaced.
  func look() async throws -> UploadedObject? { nil }

  func begin(_ upload: UploadOrder) async throws -> [UInt8] {
    let server = try await capabilities()
    guard server.extensions.contains("creation") else {
      throw TaskFailure(code: .destinationInvalid, message: "\(location) does not create uploads", class: .fail)
    }
    var session = Session(
      hashes: parameters.checksum != UploadParameters.Checksum.none && server.extensions.contains("checksum")
        && server.hashes.contains("sha256"),
      terminates: server.extensions.contains("termination"), isAgain: upload.mayBeThere)
    let count = upload.plan.segments(of: upload.size)
    for segment in 0..<count {
      let size = upload.plan.range(of: segment, size: upload.size).count
      var headers = [(name: "Upload-Length", value: "\(size)")]
      if count > 1 { headers.append(("Upload-Concat", "partial")) } else { headers.append(metadata(upload)) }
      do {
        session.urls.append(try await create(headers))
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
    guard session.urls.count == count else { return .gone }
    var receipts: [Int: UploadReceipt] = [:]
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

  func forget(_ plan: UploadPlan, since milliseconds: Int64) async throws {}

  func send(_ segment: UploadSegment, of upload: UploadOrder, session: [UInt8]) async throws -> UploadReceipt {
    let session = try Session(session)
    let url = session.urls[segment.number]
    // They count as sent as long as they are there.
    var bodies: [UploadBody] = []
    var offset = segment.offset
    // An empty file has one request too, with which some servers make the file.
    repeat {
      let piece = offset..<min(segment.range.upperBound, offset + (parameters.partSize ?? Self.standardPiece))
      // The last byte finishes the upload.
      if piece.upperBound == segment.range.upperBound { try await upload.body.source.check() }
      var headers = headers(for: url)
      headers.append(("Upload-Offset", "\(offset - segment.range.lowerBound)"))
      headers.append(("Content-Type", "application/offset+octet-stream"))
      let body: UploadBody
      if session.hashes {
        let bytes = try await upload.body.source.read(piece)
        headers.append(("Upload-Checksum", "sha256 \(Base64.encode(digest(.sha256, of: bytes)))"))
        body = upload.body.holding(bytes)
      } else {
        body = upload.body.streaming(piece)
      }
      bodies.append(body)
      var request = CurlRequest(.patch, url: url, headers: headers, lowSpeed: .init(bytesPerSecond: 512, seconds: 60))
      request.body = body
      do {
        let answer = try await lane.answer(request, pulse: ledger.pulse)
        // Others have made it already, and take nothing more.
        if piece.isEmpty, [400, 403, 404, 405, 409, 410, 415].contains(answer.status) { break }
        offset = try next(answer, piece, of: segment, url: url)
      } catch let failure as TaskFailure {
        throw body.failure ?? UploadInterrupted(failure, before: piece.upperBound)
      } catch {
        throw body.failure ?? error
      }
    } while offset < segment.range.upperBound
    return withExtendedLifetime(bodies) { UploadReceipt(segment: segment.number) }
  }

  func finish(_ upload: UploadOrder, session: [UInt8], receipts: [UploadReceipt]) async throws -> UploadedObject {
    let session = try Session(session)
    var url = session.urls.first ?? endpoint.text
    var object = UploadedObject(size: upload.size, verified: .size)
    if session.isAgain || session.urls.count > 1 && upload.mayBeThere {
      // tus does not tell which uploads a server has, and each has a place of its own.
      object.remark =
        "the answer to an earlier end of this upload was lost: the server may have the file a second time"
    }
    if session.urls.count > 1 {
      let parts = session.urls.joined(separator: " ")
      url = try await create([("Upload-Concat", "final;\(parts)"), metadata(upload)])
    }
    object.location = url
    guard let offset = try await offset(of: url, size: upload.size, isFinal: session.urls.count > 1) else {
      object.size = nil
      object.verified = .none
      object.remark = Self.forgotten(url).remark
      return object
    }
    guard offset == upload.size else {
      throw TaskFailure(
        code: .sizeMismatch, message: "\(URLRedaction.redact(url)) has \(offset) of \(upload.size) bytes",
        class: .retry)
    }
    return object
  }

  /// Some servers forget an upload as soon as they have taken its last byte.
  private static func forgotten(_ url: String) -> UploadedObject {
    UploadedObject(location: url, remark: "the server took the whole file, and does not show it any more")
  }

  func abort(session: [UInt8]) async throws {
    let session = try Session(session)
    guard session.terminates else { return }
    for url in session.urls {
      let answer = try await lane.answer(
        CurlRequest(.delete, url: url, headers: headers(for: url)), pulse: ledger.pulse)
      guard answer.isSuccess || [403, 404, 405, 410].contains(answer.status) else {
        throw TaskFailure(refusing: answer, url: url)
      }
    }
  }

  // MARK: Requests

  private struct Capabilities {
    var extensions: Set<String> = []
    var hashes: Set<String> = []
    var largest: Int64?
  }

  private func capabilities() async throws -> Capabilities {
    let answer = try await lane.answer(
      CurlRequest(.options, url: endpoint.text, headers: headers(for: endpoint.text)), pulse: ledger.pulse)
    // Servers need not tell: then what is not there is found out when it is needed.
    if [404, 405, 501].contains(answer.status) { return Capabilities(extensions: ["creation", "termination"]) }
    guard answer.isSuccess else { throw TaskFailure(refusing: answer, url: endpoint.text) }
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
  private func create(_ more: [(name: String, value: String)]) async throws -> String {
    var request = CurlRequest(.post, url: endpoint.text, headers: headers(for: endpoint.text) + more)
    request.isSentOnce = true
    let answer = try await lane.answer(request, pulse: ledger.pulse)
    guard answer.status == 201 else { throw TaskFailure(refusing: answer, url: endpoint.text) }
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

  /// Where the upload goes on; nil if the server does not know it.
  private func offset(of url: String, size: Int64, isFinal: Bool = false) async throws -> Int64? {
    let answer = try await lane.answer(
      CurlRequest(.head, url: url, headers: headers(for: url)), pulse: ledger.pulse)
    if [403, 404, 410].contains(answer.status) { return nil }
    guard answer.isSuccess else { throw Self.failure(answer, url: url) }
    let length = answer.head["upload-length"].flatMap { Int64($0) }
    // A server may tell the offset of a concatenated upload, or not.
    let offset = answer.head["upload-offset"].flatMap { Int64($0) } ?? (isFinal ? length : nil)
    guard let offset, offset >= 0 else { throw TaskFailure.badResponse("it has no Upload-Offset", url: url) }
    guard length ?? size == size, offset <= size else {
      throw TaskFailure(
        code: .sizeMismatch,
        message: "\(URLRedaction.redact(url)) is at \(offset) of \(length ?? size) bytes, but \(size) were to be sent",
        class: .fail)
    }
    return offset
  }

  /// Where the upload goes on after a piece.
  private func next(
    _ answer: HTTPAnswer, _ piece: Range<Int64>, of segment: UploadSegment, url: String
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

  private static func failure(_ answer: HTTPAnswer, url: String) -> TaskFailure {
    var failure = TaskFailure(refusing: answer, url: url)
    switch answer.status {
    // The offset is another one, or the bytes were damaged on the way: it is asked for.
    case 409, 460: failure.class = .retry
    // Some servers keep their lock for minutes after a connection was cut.
    case 423: failure.retryAfter = failure.retryAfter ?? 15
    // Often of a proxy before the server.
    case 413: failure.message += ": smaller requests (--part-size) may be let through"
    default: break
    }
    return failure
  }

  private func headers(for url: String) -> [(name: String, value: String)] {
    let own = CurlURL(url)?.isSameOrigin(as: endpoint) == true ? fields.map { ($0.name, $0.value) } : []
    return own + [("Tus-Resumable", "1.0.0")]
  }

  private func metadata(_ upload: UploadOrder) -> (name: String, value: String) {
    let pairs = [
      ("filename", name), ("filetype", parameters.contentType ?? "application/octet-stream"),
      ("reelhaul-task", "\(upload.task)"),
      ("reelhaul-generation", "\(upload.generation)"),
    ]
    let own = parameters.metadata.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    return ("Upload-Metadata", (pairs + own).map { "\($0) \(Base64.encode($1.utf8))" }.joined(separator: ","))
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
      }
    }
  }
}
