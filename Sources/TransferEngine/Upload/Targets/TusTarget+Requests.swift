import ReelhaulCodec
import ReelhaulCurl
import ReelhaulDigest
import ReelhaulMessages
import TaskCore

extension TusTarget {
  private func ask(_ method: CurlRequest.Method, _ url: String) async throws -> CurlAnswer {
    var request = CurlRequest(method, url: url, headers: headers(for: url))
    // What the run of another owner goes on with is not ended. What a run gives up that has lost its task already is an
    // upload that nobody else knows of.
    if method == .delete, ledger.mayWrite { request.mayBegin = { [ledger] in ledger.mayWrite } }
    return try await lane.answer(request)
  }

  struct Capabilities {
    var extensions: Set<String> = []
    var hashes: Set<String> = []
    var largest: Int64?
  }

  func capabilities() async throws -> Capabilities {
    let answer = try await ask(.options, endpoint.text)
    // Servers need not tell, or something before them answers: then what is not there is found out when it is needed.
    let isUntold = answer.isSuccess && answer.head["tus-version"] == nil && answer.head["tus-extension"] == nil
    if isUntold || [404, 405, 501].contains(answer.status) {
      return Capabilities(extensions: ["creation", "termination"])
    }
    guard answer.isSuccess else { throw TaskFailure(refusing: answer.head, url: endpoint.text) }
    func words(_ name: String) -> Set<String> {
      Set((answer.head[name] ?? "").lowercased().split { $0 == "," || $0 == " " }.map(String.init))
    }
    guard answer.head["tus-version"] == nil || words("tus-version").contains("1.0.0") else {
      throw TaskFailure(code: .destinationInvalid, message: "\(location) does not speak tus 1.0.0", class: .fail)
    }
    return Capabilities(
      extensions: words("tus-extension"), hashes: words("tus-checksum-algorithm"),
      largest: answer.head.number("tus-max-size"))
  }

  enum Standing {
    case unknown
    case at(Int64)
    /// The parts are being joined: it has no offset until this is done.
    case joining
  }

  /// Where the upload goes on; nil if the server does not know it.
  func offset(of url: String, size: Int64) async throws -> Int64? {
    switch try await standing(of: url, size: size) {
    case .unknown: nil
    case .at(let offset): offset
    case .joining: throw TaskFailure.badResponse("it has no Upload-Offset", url: url)
    }
  }

  func standing(of url: String, size: Int64) async throws -> Standing {
    let answer = try await ask(.head, url)
    if [404, 410].contains(answer.status) || answer.status == 403 && answer.isOfTus { return .unknown }
    guard answer.isSuccess else {
      var failure = Self.failure(answer, url: url)
      if answer.status == 403 { failure.class = .retry }
      throw failure
    }
    let length = answer.head.number("upload-length")
    guard answer.head["upload-offset"] != nil else { return .joining }
    guard let offset = answer.head.number("upload-offset") else {
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
  func next(
    _ answer: CurlAnswer, _ piece: Range<Int64>, of segment: UploadSegment, url: String
  ) throws -> Int64 {
    // Something before the server may say so for a moment: the upload itself is asked for.
    if [404, 410].contains(answer.status) { throw UploadIncomplete() }
    guard answer.isSuccess else { throw Self.failure(answer, url: url) }
    guard let told = answer.head.number("upload-offset") else {
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

  static func failure(_ answer: CurlAnswer, url: String) -> TaskFailure {
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

  func headers(for url: String) -> [(name: String, value: String)] {
    (isOwn(url) ? fields.map { ($0.name, $0.value) } : []) + [("Tus-Resumable", "1.0.0")]
  }

  /// Whether it is on the endpoint's own server.
  private func isOwn(_ url: String) -> Bool { CurlURL(url)?.isSameOrigin(as: endpoint) == true }

  func metadata(_ upload: UploadOrder) -> (name: String, value: String) {
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

  /// Ends uploads. `isWhole`: none of them is there any more; false if the server does not end one. `hasEnded`: this call
  /// has ended any. Throws ``TaskFailure`` if it refuses it, or cannot do it now.
  ///
  /// A URL on another server is only the word of this one, and may name anything there. It must answer as an upload first,
  /// and so must one that may not be ours.
  func terminated(_ urls: [String], areOurs: Bool = true) async throws -> (isWhole: Bool, hasEnded: Bool) {
    var end = (isWhole: true, hasEnded: false)
    var refusal: TaskFailure?
    for url in urls {
      let isSure = areOurs && isOwn(url)
      var answer = try await ask(isSure ? .delete : .head, url)
      if !isSure, answer.isSuccess {
        let isUpload = answer.isOfTus && Self.marks.contains { answer.head[$0] != nil }
        guard isUpload else {
          end.isWhole = false
          continue
        }
        answer = try await ask(.delete, url)
      }
      if answer.isSuccess { end.hasEnded = true }
      if [403, 405].contains(answer.status) { end.isWhole = false }
      let isOver = [404, 405, 410].contains(answer.status) || answer.status == 403 && (!isSure || answer.isOfTus)
      // The others are ended all the same.
      if !answer.isSuccess, !isOver {
        refusal = refusal ?? TaskFailure(refusing: answer.head, url: url)
      }
    }
    if let refusal { throw refusal }
    return end
  }

  /// What tells an upload: one that is still being joined has no offset.
  private static let marks = ["upload-offset", "upload-concat"]
}

extension CurlAnswer {
  /// Whether the server itself answers. Something before it may refuse, too, but does not say that it speaks tus.
  fileprivate var isOfTus: Bool { head["tus-resumable"] != nil }
}
