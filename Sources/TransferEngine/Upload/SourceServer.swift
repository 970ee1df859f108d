import ReelhaulCurl
import ReelhaulSystem
import TaskCore

/// Asks one URL for bytes, follows its redirects, and tries again what may succeed then.
final class SourceServer: Sendable {
  enum Bytes: Sendable {
    case part([UInt8], of: SourceIdentity)
    case whole([UInt8], SourceIdentity, HeldBytes.Portion?)
    case unranged
  }

  private struct State {
    var url: CurlURL
    /// Signs the requests to an object.
    var s3: S3Object?
    /// Where the redirects led to. After a failure they are followed anew.
    var place: Place
    /// Of the answer that told the version.
    var head = CurlHead(status: 0)

    init(_ url: CurlURL, s3: S3Object?) {
      self.url = url
      self.s3 = s3
      place = Place(url: url.text, isAtOrigin: true)
    }
  }

  private let fields: [HeaderField]
  private let lane: HTTPLane
  private let holder: HeldBytes.Holder
  private let limits = DownloadLimits()
  private let state: Lock<State>

  init(_ url: CurlURL, s3: S3Object?, fields: [HeaderField], lane: HTTPLane, holder: HeldBytes.Holder) {
    self.fields = fields
    self.lane = lane
    self.holder = holder
    state = Lock(State(url, s3: s3))
  }

  var s3: S3Object? { state.withLock { $0.s3 } }
  var head: CurlHead { state.withLock { $0.head } }

  var loop: EventLoop { lane.loop }

  /// Throws ``UploadSourceChanged`` if a part of a version is asked for, and the source has another one.
  func get(_ asked: ResponseGate.Asked) async throws -> Bytes {
    var budget = RetryBudget(limit: limits.retries, firstMilliseconds: 200)
    var portion: HeldBytes.Portion?
    while true {
      do {
        return try await once(asked, portion)
      } catch let lack as MemoryLack {
        // Nobody waits with bytes that others wait for, nor with a connection.
        portion = nil
        portion = try await lane.held.take(lack.count, for: holder)
      } catch let failure as TaskFailure {
        let failure = try await explained(failure)
        guard failure.class == .retry, let pause = budget.pause(after: failure) else { throw failure }
        // A random part, so that the connections of an upload do not all try again at the same moment.
        try await lane.loop.sleep(for: .milliseconds(Int64.random(in: pause / 2...pause)))
      }
    }
  }

  /// What a failure means, after which all begins at the source's own server again, in the region where it is.
  private func explained(_ failure: TaskFailure) async throws -> TaskFailure {
    let s3 = state.withLock { state in
      state = State(state.url, s3: state.s3)
      return state.s3
    }
    guard let s3 else { return failure }
    if let explained = await s3.explained(failure, fields) { return explained }
    let moved = try await s3.moved()
    state.withLock { $0 = State(moved.url, s3: moved) }
    var failure = failure
    failure.class = .retry
    return failure
  }

  private func once(_ asked: ResponseGate.Asked, _ portion: HeldBytes.Portion?) async throws -> Bytes {
    let receiver = SourceReceiver(lane.held, for: holder, portion)
    let (url, place, s3) = state.withLock { ($0.url, $0.place, $0.s3) }
    let signer = await s3?.current()
    let exchange = Exchange(
      asked, at: place, source: url, isMedia: ResponseGate.isMedia(path: url.path), object: s3?.place,
      redirects: limits.redirects)
    var head = CurlHead(status: 0)
    let fetch = Fetch(exchange, receiver: receiver) { answer, place in
      if place.isAtOrigin { s3?.client.learnTime(from: answer) }
      head = answer
    }
    let end = await fetch.run(on: lane) { place in
      var sent = request(asked, to: place)
      signer?.sign(&sent)
      return sent
    }
    try Task.checkCancellation()
    switch receiver.answer {
    case nil: throw end.interruption?.failure ?? .badResponse("there was no answer", url: end.place.url)
    case .changed: throw UploadSourceChanged()
    case .unranged:
      if case .part = asked { throw UploadSourceChanged() }
      return .unranged
    case .refused(let failure, _), .misdirected(let failure): throw failure
    case .status(var failure):
      // What a redirect named may have expired: the source's own server is asked again.
      if place.url != url.text, DownloadMachine.staleCodes.contains(failure.code) {
        failure.class = .retry
        throw failure
      }
      // No other signature can be had of the source's own server.
      if end.place.isAtOrigin, [.http(401), .http(403)].contains(failure.code) { failure.class = .fail }
      throw failure
    case .part, .whole: break
    }
    if let lack = receiver.lack { throw lack }
    if let reason = receiver.refusal {
      let message =
        "\(URLRedaction.redact(url.text)) \(reason): only a file of at most \(RemoteSource.longestHeld) bytes is copied from there"
      throw TaskFailure(code: .sourceInvalid, message: message, class: .fail)
    }
    if let failure = end.interruption?.failure { throw failure }
    state.withLock {
      $0.place = end.place
      if case .part = asked {} else { $0.head = head }
    }
    lane.metrics.moved(receiver.bytes.count, .download, s3 == nil ? TransferMetrics.Scheme(url.text) : .s3)
    switch receiver.answer {
    case .part(let range, let identity):
      guard receiver.bytes.count == range.count else {
        throw TaskFailure.badResponse("a range ended early", url: end.place.url)
      }
      return .part(receiver.bytes, of: identity)
    case .whole(let identity, _):
      receiver.portion?.shrink(to: Int64(receiver.bytes.count))
      return .whole(receiver.bytes, identity, receiver.portion)
    default: return .unranged
    }
  }

  private func request(_ asked: ResponseGate.Asked, to place: Place) -> CurlRequest {
    var headers: [(name: String, value: String)] = [("Accept-Encoding", "identity")]
    switch asked {
    case .first(let count): headers.append(("Range", "bytes=0-\(count - 1)"))
    case .part(let range, let version):
      headers.append(("Range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)"))
      if let etag = version.etag, !version.etagIsWeak { headers.append(("If-Match", etag)) }
    case .whole: break
    }
    if place.isAtOrigin { headers += fields.map { ($0.name, $0.value) } }
    return CurlRequest(url: place.url, headers: headers, lowSpeed: .init(bytesPerSecond: 512, seconds: 20))
  }
}

/// A whole file comes, which may not be held yet.
private struct MemoryLack: Error {
  let count: Int64
}

/// Keeps the bytes of one answer.
// @unchecked: used only on the client's loop, and after its end by the caller.
private final class SourceReceiver: FetchReceiver, @unchecked Sendable {
  private(set) var answer: SourceAnswer?
  private(set) var bytes: [UInt8] = []
  /// Why a whole file is not held.
  private(set) var refusal: String?
  /// Why it is not held now.
  private(set) var lack: MemoryLack?
  /// Lets a whole file be held.
  private(set) var portion: HeldBytes.Portion?
  private let held: HeldBytes
  private let holder: HeldBytes.Holder
  private var limit = RemoteSource.longestHeld

  init(_ held: HeldBytes, for holder: HeldBytes.Holder, _ portion: HeldBytes.Portion?) {
    self.held = held
    self.holder = holder
    self.portion = portion
  }

  func receive(_ answer: SourceAnswer, from place: Place) -> Reception {
    self.answer = answer
    switch answer {
    case .part(let range, _):
      limit = Int64(range.count)
    case .whole(let identity, let isDelimited):
      if !isDelimited { refusal = "does not say where the file ends" }
      if identity.size ?? 0 > limit { refusal = Self.tooLong }
      if refusal != nil { return .refuse }
      if let size = identity.size { limit = size }
      if portion.map({ $0.count < limit }) ?? true { portion = held.takeNow(limit, for: holder) }
      guard portion != nil else {
        lack = MemoryLack(count: limit)
        return .refuse
      }
    default: return .skip
    }
    // An array that grows needs twice the memory. More than is held was asked for.
    bytes.reserveCapacity(Int(limit))
    return .write(offset: 0, count: nil)
  }

  func receive(body: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> CurlVerdict {
    guard Int64(bytes.count + body.count) <= limit else {
      if case .whole = answer { refusal = Self.tooLong }
      return .abort
    }
    bytes.append(contentsOf: body)
    return .continue
  }

  func finish() async {}

  private static let tooLong = "sends no ranges of one version of the file (no length, no ranges or no validator)"
}
