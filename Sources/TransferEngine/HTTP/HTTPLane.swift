import ReelhaulCurl
import ReelhaulSystem
import TaskCore

/// What requests of one storage root share: its loop, connections and limits.
struct HTTPLane: Sendable {
  /// Of the root, for ``HostConnections``.
  let name: String
  let loop: EventLoop
  /// The threads of the root, for what must not hold up the loop.
  let files: BlockingPool
  let client: CurlClient
  let hosts: HostConnections
  let held: HeldBytes
  let limiter: RateLimiter?
  let metrics: TransferMetrics
  /// Called now and then while a request waits for a connection.
  let pulse: @Sendable () -> Void
  /// Called with a request that has got its connection, for which it may have waited long: a signature has a time.
  var complete: @Sendable (inout CurlRequest) -> Void = { _ in }
  /// Awaited before a request is sent that has got its connection. If it throws, nothing is sent.
  var connected: @Sendable () async throws -> Void = {}

  /// Sends `request` once it has a connection to `server` (host:port). Throws ``CurlError/canceled`` if the task is
  /// canceled meanwhile.
  func perform(_ request: CurlRequest, to server: String, handler: any CurlHandler) async throws(CurlError) {
    let isRelay = (request.body as? UploadBody)?.isRelay ?? false
    do {
      try await hosts.connect(to: server, for: name, isRelay: isRelay, on: loop, pulse: pulse)
    } catch {
      throw .canceled
    }
    let witness = HostWitness(request.body, handler) { hosts.served(server) }
    var request = request
    complete(&request)
    if let body = request.body as? UploadBody { request.mayBegin = body.mayBegin }
    if request.body != nil { request.body = witness }
    let number = hosts.sent(to: server)
    defer { hosts.giveBack(server, for: name, isRelay: isRelay, after: witness.fate, of: number) }
    do { try await connected() } catch { throw .canceled }
    do throws(CurlError) {
      try await client.perform(request, handler: witness)
    } catch {
      witness.failed(error)
      throw error
    }
  }

  /// Sends `request`, and returns the answer with its body, of which `limit` bytes are kept.
  ///
  /// An answer that refuses the request counts although the connection broke after it: the server has not read the
  /// rest of the body. So does any answer to a body of the source that was sent whole: its status says what became of it.
  func call(_ request: CurlRequest, limit: Int = 1 << 20) async throws(CurlError) -> CurlAnswer {
    let answer = try await callOnce(request, limit: limit)
    // A server that knows no 100-continue: it refuses the field, or takes the head for the whole request.
    let isEarly = answer.isSuccess && (request.body as? UploadBody)?.isSent == false
    guard answer.status == 417 || isEarly, let body = request.body, body.rewind() else { return answer }
    var request = request
    request.headers.append(("Expect", ""))
    return try await callOnce(request, limit: limit)
  }

  private func callOnce(_ request: CurlRequest, limit: Int) async throws(CurlError) -> CurlAnswer {
    guard let url = CurlURL(request.url) else { throw CurlError(.badRequest, message: "the URL cannot be sent") }
    let collector = CurlAnswerCollector(limit: limit)
    do throws(CurlError) {
      try await perform(request, to: url.server, handler: collector)
    } catch {
      let isSent = (request.body as? UploadBody)?.isSent == true
      guard let answer = collector.isFull || isSent ? collector.answer : collector.refusal, error.code != .canceled
      else { throw error }
      return answer
    }
    // The server has ended the connection within the head of its answer.
    guard let answer = collector.answer else {
      throw CurlError(.noResponse, isRetryable: true, message: "there was no whole answer")
    }
    return answer
  }
}

extension HTTPLane {
  /// Like ``call(_:limit:)``, and throws ``TaskFailure``. A success that arrives before a body of the source was sent is
  /// an error: the server cannot have stored it.
  func answer(_ request: CurlRequest, limit: Int = 1 << 20) async throws -> CurlAnswer {
    let answer: CurlAnswer
    do throws(CurlError) {
      answer = try await call(request, limit: limit)
    } catch {
      throw TaskFailure(error, url: request.url)
    }
    guard !answer.isSuccess || (request.body as? UploadBody)?.isSent != false else {
      throw TaskFailure.badResponse("it answered \(answer.status) before it had the whole body", url: request.url)
    }
    return answer
  }
}

extension CurlRequest.LowSpeed {
  /// Of requests that bring a file, each direction must move this much. A server that has it all may check it, or bring it
  /// elsewhere, before it answers.
  static let upload = Self(bytesPerSecond: 512, seconds: 60, answerSeconds: 300)
}

extension TaskFailure {
  /// The failure for an answer that refuses what was to be stored.
  init(refusing head: CurlHead, url: String) {
    self = .status(head.status, head: head, url: url, now: Clocks.realtimeMicroseconds() / 1_000_000)
    switch head.status {
    case 401, 403: self.class = .fail
    case 423, 507: self.class = .wait
    default: break
    }
  }

  /// Whether the server refused who asks, and not what is asked for.
  var isOfCredential: Bool { [.http(401), .http(403)].contains(code) }

  /// Whether the server may take the same request with a credential that is read anew.
  var mayBeOfOldCredential: Bool { self.class == .fail && isOfCredential }
}

extension CurlHead {
  /// The length of the whole object, from an answer to HEAD or GET.
  var size: Int64? { self["content-encoding"] == nil ? number("content-length") : nil }

  /// A length or an offset: digits without a sign.
  func number(_ name: String) -> Int64? { self[name].flatMap { ContentRange.number($0[...]) } }
}

extension StorageRoot {
  /// - Parameter pulse: Shows that a run is alive whose requests wait for a connection: that of a download. Others show
  ///   it by a timer.
  func lane(pulse: @escaping @Sendable () -> Void = {}) -> HTTPLane {
    HTTPLane(
      name: name, loop: loop, files: files, client: client, hosts: hosts, held: held, limiter: limiter,
      metrics: metrics, pulse: pulse)
  }
}
