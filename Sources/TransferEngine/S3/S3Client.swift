import ReelhaulCurl
import ReelhaulSystem
import TaskCore

/// Sends signed requests to one bucket: with the credential that the task names, to the region that the bucket is in.
final class S3Client: Sendable {
  let bucket: String
  private let root: StorageRoot
  private let lane: HTTPLane
  private let credentialName: String?
  private let ledger: (any TransferLedger)?
  let signer = S3Signer()
  private let known = Lock<S3Credential?>(nil)
  private let clock = Lock<Int64>(0)

  /// - Parameter ledger: of a run that changes something. It is asked whether the run still owns its task before each
  ///   request that does so is sent, which may have waited for long.
  init(
    bucket: String, root: StorageRoot, credential: String?, ledger: (any TransferLedger)? = nil,
    pulse: @escaping @Sendable () -> Void = {}
  ) {
    self.bucket = bucket
    self.root = root
    lane = root.lane(pulse: pulse)
    credentialName = credential
    self.ledger = ledger
  }

  /// One request.
  struct Call {
    var method: CurlRequest.Method
    /// Nil for the bucket itself.
    var key: String?
    var query: S3Query = [:]
    var headers: [HeaderField] = []
    /// Makes the body, for each try anew.
    var body: (@Sendable () -> any CurlBody)?
    /// The SHA-256 of the body in hexadecimal digits, if it is known; the empty body's is.
    var payloadHash: String?
    /// Whether a second one would do something else than the first.
    var isSentOnce = false
    /// The server may work for minutes before it answers.
    var isSlow = false

    fileprivate var isChange: Bool { ![.get, .head].contains(method) }
    fileprivate var isAbort: Bool { method == .delete && query.items.contains { $0.name == "uploadId" } }
  }

  /// The answer, if it is a success. Throws ``S3Error`` for any other, and ``TaskFailure`` if there was none.
  ///
  /// Credentials that have ended are fetched anew, a bucket of another region is asked there, and a request whose time the
  /// store refuses is signed with the store's time, each once.
  func send(_ call: Call) async throws -> CurlAnswer {
    var refreshes = true
    var moves = true
    var adjusts = true
    while true {
      let credential = try await credential()
      let ahead = clockDifference
      let answer = try await answer(call, credential, ahead: ahead)
      guard !answer.isSuccess else { return answer }
      let error = S3Error(answer.head, body: answer.body)
      if error.refreshesCredentials, refreshes {
        refreshes = false
        try await refresh(refused: credential)
      } else if error.refusesKeys, refreshes {
        refreshes = false
        guard try await refresh(refused: credential) != credential else { throw error }
      } else if error.isElsewhere, moves, let region = error.region, region != credential.region {
        moves = false
        known.withLock { $0?.region = region }
      } else if adjusts, let difference = error.clockDifference(from: Self.now + ahead) {
        adjusts = false
        clock.withLock { $0 = ahead + difference }
      } else if call.method == .head, error.status == 400, error.code == nil {
        // The answer to a HEAD cannot say that the credential has ended.
        guard refreshes else { throw try await reason(ofRefused: call) ?? error }
        refreshes = false
        try await refresh(refused: credential)
      } else if call.method == .head, error.status == 403, error.code == nil, refreshes, credential.isTemporary {
        // Nor that it has gone: without a look, an object that is there could be replaced with the next keys.
        refreshes = false
        _ = try await reason(ofRefused: call)
        guard try await self.credential() != credential else { throw error }
      } else {
        throw error
      }
    }
  }

  /// What the answer to a GET of one byte says in place of that to a HEAD, which has no body.
  private func reason(ofRefused call: Call) async throws -> S3Error? {
    var asked = call
    asked.method = .get
    asked.headers.append(HeaderField(name: "Range", value: "bytes=0-0"))
    do {
      _ = try await send(asked)
      return nil
    } catch let error as S3Error {
      return error.code == nil ? nil : error
    }
  }

  /// The seconds by which the store's clock is ahead of this worker's, if it has complained.
  var clockDifference: Int64 { clock.withLock { $0 } }

  /// Learns the store's time from the head of an answer to a request that another client has sent.
  func learnTime(from head: CurlHead) {
    clock.withLock { ahead in
      ahead += S3Error(head, body: []).clockDifference(from: Self.now + ahead) ?? 0
    }
  }

  /// What the answer's document says.
  func document<Document: S3Document>(_ type: Document.Type, _ call: Call) async throws -> Document {
    try document(type, in: try await send(call), call.key)
  }

  /// What the answer's document says, and its header fields.
  func answer<Document: S3Document>(
    _ type: Document.Type, _ call: Call
  ) async throws -> (document: Document, head: CurlHead) {
    let answer = try await send(call)
    return (try document(type, in: answer, call.key), answer.head)
  }

  /// What the document in an answer says. Throws ``S3Error`` if it is an error inside a success.
  func document<Document: S3Document>(_ type: Document.Type, in answer: CurlAnswer, _ key: String?) throws -> Document {
    let document: Result<Document, S3Error>
    do throws(S3XMLError) {
      document = try Document.read(answer.body, status: answer.status)
    } catch {
      throw TaskFailure.badResponse("\(error)", url: place(key))
    }
    return try document.get()
  }

  /// `s3://bucket/key`, for people.
  func place(_ key: String?) -> String { "s3://\(bucket)/\(key ?? "")" }

  /// The failure of the task for an error of a call.
  func failure(_ error: any Error, _ key: String?) -> any Error {
    guard let error = error as? S3Error else { return error }
    return failure(error, key)
  }

  /// The failure of the task for the store's error, which may repeat what was sent to it.
  func failure(_ error: S3Error, _ key: String?) -> TaskFailure {
    var error = error
    if let keys = known.withLock({ $0 }) { error.message = error.message.map(keys.hidden(in:)) }
    return error.failure(place(key), now: Self.now)
  }

  /// Computes something of a whole part, for which the loop must not wait.
  func computing<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await root.files.run(body)
  }

  /// Whether the store is reached without TLS: then the bytes are signed, because nothing else protects them.
  func isPlain() async throws -> Bool { try await credential().endpointURL.lowercased().hasPrefix("http://") }

  /// Runs `body` with a part of `source`, once this worker may hold it in memory for the store.
  func holding<Result>(
    _ range: Range<Int64>, of source: any UploadSource, _ body: (ArraySlice<UInt8>) async throws -> Result
  ) async throws -> Result {
    try await root.held.holding(range, of: source, in: root.name, for: server(), body)
  }

  /// In whose name the store's bytes are held. Without a place, its requests say why there is none.
  func server() async -> String {
    let place = (try? await S3Endpoint(credential(), bucket: bucket, key: nil))?.url()
    return place.flatMap { CurlURL($0)?.server } ?? bucket
  }

  var loop: EventLoop { root.loop }

  /// The bucket among those of all stores, and whether AWS's own service has it.
  func store() async throws -> (name: String, isAWS: Bool) {
    let credential = try await credential()
    let host = CurlURL(credential.endpointURL)?.host.lowercased() ?? ""
    return (
      "\(credential.endpointURL)/\(bucket)", host.hasSuffix(".amazonaws.com") || host.hasSuffix(".amazonaws.com.cn")
    )
  }

  /// The keys that are in use, with the region that the store told.
  func credential() async throws -> S3Credential {
    if let known = known.withLock({ $0 }),
      known.expiresAt.map({ $0 > Timestamp(microseconds: Clocks.realtimeMicroseconds()) }) ?? true
    {
      return known
    }
    let found = try await root.s3Credential(credentialName)
    return known.withLock { known in
      // The region that the store told stays.
      var found = found
      if let region = known?.region { found.region = region }
      known = found
      return found
    }
  }

  /// Fetches the keys anew, because the store has refused them.
  @discardableResult
  func refresh(refused: S3Credential) async throws -> S3Credential {
    var next = try await root.s3Credential(credentialName, refused: refused)
    next.region = refused.region
    known.withLock { [next] in $0 = next }
    return next
  }

  /// Sends one request, with a signature of the time at which it has got its connection.
  ///
  /// - Parameter ahead: the seconds by which the store's clock is ahead of this worker's.
  private func answer(_ call: Call, _ credential: S3Credential, ahead: Int64) async throws -> CurlAnswer {
    let endpoint: S3Endpoint
    do throws(InvalidS3Location) {
      endpoint = try S3Endpoint(credential, bucket: bucket, key: call.key)
    } catch {
      throw TaskFailure(code: .destinationInvalid, message: "\(place(call.key)): \(error)", class: .fail)
    }
    var request = CurlRequest(
      call.method, url: endpoint.url(call.query), headers: call.headers.map { ($0.name, $0.value) },
      lowSpeed: call.isSlow ? nil : .upload,
      deadline: call.isSlow ? .seconds(600) : nil)
    request.keepsPath = true
    request.isSentOnce = call.isSentOnce
    request.body = call.body?()
    // What the run of another owner goes on with is not changed. What a run gives up that has lost its task already is an
    // upload that it has just begun, and nobody else knows of.
    if call.isChange, let ledger, !call.isAbort || ledger.mayWrite { request.mayBegin = { ledger.mayWrite } }

    let hash = call.payloadHash ?? (call.body == nil ? S3Signer.emptyPayload : S3Signer.unsignedPayload)
    let unsigned = S3Request(call.method.rawValue, endpoint, query: call.query, headers: call.headers)
    var lane = lane
    lane.complete = { [signer] request in
      let fields = signer.fields(for: unsigned, payloadHash: hash, credential: credential, at: Self.now + ahead)
      request.headers += fields.map { ($0.name, $0.value) }
    }
    return try await lane.answer(request, limit: 8 << 20)
  }

  /// Seconds since 1970, by this worker's clock.
  private static var now: Int64 { Clocks.realtimeMicroseconds() / 1_000_000 }
}
