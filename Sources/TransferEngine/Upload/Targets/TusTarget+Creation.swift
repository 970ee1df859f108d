import ReelhaulCurl
import ReelhaulMessages
import ReelhaulSystem
import TaskCore

extension TusTarget {
  var mayBringFile: Bool { parameters.creationWithUpload }

  func begin(_ upload: UploadOrder) async throws -> [UInt8] {
    let server = try await capabilities()
    guard server.extensions.contains("creation") else {
      throw TaskFailure(code: .destinationInvalid, message: "\(location) does not create uploads", class: .fail)
    }
    var session = Session(
      hashes: parameters.checksum != UploadParameters.Checksum.none && server.extensions.contains("checksum")
        && server.hashes.contains("sha256"),
      terminates: server.extensions.contains("termination"), isAgain: upload.mayBeThere || upload.mayBeTwice,
      hasOrphan: hasOrphan.isSet)
    let count = upload.plan.segments(of: upload.size)
    let isWhole = !session.isAgain && carriesWhole(upload, server)
    for segment in 0..<count {
      let size = upload.plan.range(of: segment, size: upload.size).count
      var headers = [(name: "Upload-Length", value: "\(size)")]
      if count > 1 { headers.append(("Upload-Concat", "partial")) } else { headers.append(metadata(upload)) }
      do {
        let made =
          isWhole ? try await createWhole(upload, headers, isHashed: session.hashes) : try await create(headers)
        session.urls.append(made.url)
        taken.withLock { $0 = made.taken }
        // If it is gone in the next run, it was never whole.
        if isWhole, made.taken < upload.size { try await upload.publishing(false) }
        if count > 1, segment < count - 1 { try await upload.record(session.json) }
      } catch {
        _ = try? await abort(session: session.json)
        throw error
      }
    }
    return session.json
  }

  /// Under a limit of the rate a run that is stopped would leave a creation that waits for ever.
  private func carriesWhole(_ upload: UploadOrder, _ server: Capabilities) -> Bool {
    parameters.creationWithUpload && server.extensions.contains("creation-with-upload")
      && upload.plan.segments(of: upload.size) == 1 && !upload.body.isLimited
      && 1...min(parameters.partSize ?? .max, Self.standardPiece) ~= upload.size
  }

  /// A new upload that is sent with its creation.
  private func createWhole(
    _ upload: UploadOrder, _ headers: [(name: String, value: String)], isHashed: Bool
  ) async throws -> (url: String, taken: Int64) {
    let source = upload.body.source
    return try await lane.held.holding(0..<upload.size, of: source, in: lane.name, for: endpoint.server) { bytes in
      try await source.check()
      // It may wait in line for long.
      var target = self
      let failure = Lock<(any Error)?>(nil)
      target.lane.connected = {
        do { try await upload.publishing(true) } catch {
          failure.withLock { $0 = error }
          throw error
        }
      }
      let checksum = isHashed ? [try await checksum(bytes)] : []
      do {
        return try await target.create(headers + checksum, body: upload.body.holding(bytes))
      } catch {
        throw failure.withLock { $0 } ?? error
      }
    }
  }

  /// The URL of a new upload, and how many bytes of `body` the server has taken.
  ///
  /// - Parameters:
  ///   - body: All of its bytes.
  ///   - deadline: For one that the server makes of others: it may copy all bytes before it answers.
  func create(
    _ more: [(name: String, value: String)], body: UploadBody? = nil, takes deadline: Duration? = nil
  ) async throws -> (url: String, taken: Int64) {
    var request = CurlRequest(.post, url: endpoint.text, headers: headers(for: endpoint.text) + more)
    if let deadline { (request.lowSpeed, request.deadline) = (nil, deadline) }
    if let body {
      // A server that answers before it has the bytes has made an upload already.
      request.headers += [("Content-Type", "application/offset+octet-stream"), ("Expect", "")]
      (request.body, request.lowSpeed) = (body, .upload)
    }
    defer { body?.release() }
    request.isSentOnce = true
    request.mayBegin = { [ledger] in ledger.mayWrite }
    let answer = try await lane.answer(request)
    guard answer.status == 201 else {
      var failure =
        body == nil ? TaskFailure(refusing: answer.head, url: endpoint.text) : Self.failure(answer, url: endpoint.text)
      if answer.isSuccess {
        failure.message += ", but tus answers the creation of an upload with 201"
        // It may have made one.
        if let url = try? place(in: answer) { _ = try? await terminated([url], areOurs: false) }
      }
      throw failure
    }
    // What it says of bytes that it cannot have is not believed: the upload itself is asked for.
    let told = answer.head.number("upload-offset") ?? 0
    return (try place(in: answer), told <= body?.size ?? 0 ? told : 0)
  }

  /// The URL of the upload that a creation has made.
  private func place(in answer: CurlAnswer) throws -> String {
    guard let url = answer.head["location"].flatMap(endpoint.resolving), ["http", "https"].contains(url.scheme),
      !url.hasCredentials, url.text.utf8.count <= TaskSpec.urlLimit
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
}
