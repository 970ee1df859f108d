import ReelhaulCurl
import ReelhaulDigest
import ReelhaulSystem
import Synchronization
import TaskCore

/// A file of an http(s) server, or an object of a store that speaks S3, of which every read asks for its range. A file that
/// the server does not give in ranges, or without a validator, is held in memory if it is short.
final class RemoteSource: OpenedSource {
  let identity: UploadIdentity
  private let server: SourceServer
  private let version: SourceIdentity
  /// All bytes, if they are held.
  private let held: [UInt8]?
  /// Lets them be held as long as the source is used.
  private let portion: HeldBytes.Portion?
  let properties: [HeaderField]

  /// The longest file that is held.
  static let longestHeld: Int64 = 64 << 20
  /// The first request asks for so many bytes: a file that is not longer needs no other.
  private static let firstRange: Int64 = 64 << 10

  private init(
    _ server: SourceServer, _ version: SourceIdentity, size: Int64, held: [UInt8]?, portion: HeldBytes.Portion? = nil
  ) {
    self.server = server
    self.version = version
    self.held = held
    self.portion = portion
    properties = server.s3 == nil ? [] : Self.properties(server.head)
    // Bytes that are held are their own validator. A weak one proves nothing to the next run.
    var name = [version.versionID, version.etag, version.lastModified].map { $0 ?? "" }.joined(separator: "|")
    if !version.isStrong { name += "|\(UInt64.random(in: 0...UInt64.max))" }
    identity = UploadIdentity(
      size: size, version: held.map { "sha256 \(Base64.encode(digest(.sha256, of: $0)))" } ?? name)
  }

  /// - Parameters:
  ///   - s3: Signs the requests, if `url` is that of an object.
  ///   - fields: The task's header fields and those of its credential. They go only to the server of `url`.
  ///   - holder: In whose name the bytes are held.
  static func open(
    _ url: CurlURL, s3: S3Object? = nil, fields: [HeaderField], lane: HTTPLane, holder: HeldBytes.Holder
  ) async throws -> RemoteSource {
    let server = SourceServer(url, s3: s3, fields: fields, lane: lane, holder: holder)
    var answer = try await server.get(.first(count: firstRange))
    if case .part(let bytes, let version) = answer, let size = version.size {
      if Int64(bytes.count) == size { return RemoteSource(server, version, size: size, held: bytes) }
      if version.hasValidator { return RemoteSource(server, version, size: size, held: nil) }
    }
    if case .whole = answer {} else { answer = try await server.get(.whole) }
    guard case .whole(let bytes, let version, let portion) = answer else {
      throw TaskFailure.badResponse("the server does not send the whole file", url: url.text)
    }
    return RemoteSource(server, version, size: Int64(bytes.count), held: bytes, portion: portion)
  }

  var isHeld: Bool { held != nil }
  var isStrong: Bool { isHeld || version.isStrong }
  var needsConnections: Bool { !isHeld }

  func read(_ range: Range<Int64>) async throws -> ArraySlice<UInt8> {
    if let held { return held[Int(range.lowerBound)..<Int(range.upperBound)] }
    var (bytes, rest): ([UInt8], Range<Int64>) = ([], range)
    // Servers may send less than was asked for.
    while !rest.isEmpty {
      guard case .part(let part, _) = try await server.get(.part(rest, of: version)) else {
        throw UploadSourceChanged()
      }
      if rest == range, part.count == range.count { return part[...] }
      bytes.reserveCapacity(range.count)
      bytes += part
      rest = rest.lowerBound + Int64(part.count)..<range.upperBound
    }
    return bytes[...]
  }

  private static func properties(_ head: CurlHead) -> [HeaderField] {
    var fields: [HeaderField] = []
    for field in head.fields {
      let isMetadata = field.name.hasPrefix("x-amz-meta-") && !field.name.hasPrefix("x-amz-meta-reelhaul-")
      guard isMetadata || contentFields.contains(field.name) else { continue }
      var value = field.value
      if field.name == "content-encoding" {
        // Some stores keep this word, which is of a request's body.
        let codings = value.split(separator: ",").map { $0.drop { $0 == " " } }
        value = codings.filter { $0.lowercased() != "aws-chunked" }.joined(separator: ",")
      }
      // Each store makes something else of other characters.
      guard !value.isEmpty, value.utf8.allSatisfy({ 0x20..<0x7F ~= $0 }) else { continue }
      fields.append(HeaderField(name: field.name, value: value))
    }
    return fields
  }

  private static let contentFields: Set<String> = [
    "content-type", "content-encoding", "content-language", "content-disposition", "cache-control",
  ]

  var copyFields: [HeaderField]? {
    guard held == nil, let s3 = server.s3, let etag = version.etag, !version.etagIsWeak else { return nil }
    return [
      HeaderField(name: "x-amz-copy-source", value: s3.copySource),
      HeaderField(name: "x-amz-copy-source-if-match", value: etag),
    ]
  }

  func check() async throws {
    if held == nil { _ = try await read(0..<1) }
  }

  func mismatch(
    _ expect: Expectation, seeing see: @escaping @Sendable (UnsafeRawBufferPointer) -> Void,
    while goesOn: @escaping @Sendable (_ offset: Int64) -> Bool
  ) async throws -> String? {
    if let difference = identity.mismatch(expect) { return difference }
    guard expect.hasDigest || !isStrong else { return nil }
    var sha256 = DigestState(.sha256)
    var md5 = DigestState(.md5)
    var offset: Int64 = 0
    while offset < identity.size {
      // The next run would begin at the first byte.
      let range = offset..<min(identity.size, offset + 4 << 20)
      let bytes = try await server.loop.patiently(while: { goesOn(range.lowerBound) }, { try await read(range) })
      bytes.withUnsafeBytes {
        sha256.update($0)
        if expect.md5 != nil { md5.update($0) }
        see($0)
      }
      offset = range.upperBound
      guard goesOn(offset) else { throw CancellationError() }
    }
    let digests = FileDigests(sha256: sha256.finish(), md5: expect.md5 == nil ? nil : md5.finish())
    return DigestMismatch(expect, digests)?.description
  }
}

/// Asks one URL for bytes, follows its redirects, and tries again what may succeed then.
private final class SourceServer: Sendable {
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
