import ReelhaulSystem

/// An HTTP/1.1 store on a free loopback port for the tests of uploads. It speaks S3 in path style under `/BUCKET/KEY`,
/// tus 1.0.0 under `/tus` and plain PUT, POST, GET, HEAD and DELETE under `/put/…`, makes the mistakes that a test
/// asks for, and remembers every request.
///
///     let store = try StoreServer()
///     store.script { $0.operation == .completeUpload && $0.ordinal == 1 ? [.closeAfterApplying] : [] }
///     …
///     #expect(store.objects["films/a.mp4"]?.matches(content) == true)
package final class StoreServer: Sendable {
  /// Decides the faults for one request; `[]` for none.
  package typealias Script = @Sendable (StoreRequest) -> [StoreFault]

  private struct State {
    var store = StoreState()
    var script: Script?
    var exchanges: [StoreExchange] = []
    var ordinals: [StoreOperation: Int] = [:]
    var attempts: [String: Int] = [:]
    var waiting: [(predicate: @Sendable (StoreExchange) -> Bool, CheckedContinuation<StoreExchange, Never>)] = []
  }

  package var port: UInt16 { listener.port }
  private let listener: LoopbackServer
  private let state = Lock(State())

  /// - Parameter receiveBuffer: the number of bytes that it accepts before it reads them; nil for the usual number.
  package init(receiveBuffer: Int32? = nil, options: StoreOptions = StoreOptions()) throws {
    listener = try LoopbackServer(name: "store", receiveBuffer: receiveBuffer)
    self.options = options
    listener.start { [self] socket in StoreConnection(stream: StoreStream(socket), server: self).serve() }
  }

  package func url(_ path: String = "", host: String = "127.0.0.1") -> String { "http://\(host):\(port)\(path)" }

  package var options: StoreOptions {
    get { state.withLock { $0.store.options } }
    set { state.withLock { $0.store.options = newValue } }
  }

  /// The objects by `bucket/key`, `tus/ID` and `put/…`.
  package var objects: [String: StoreObject] { state.withLock { $0.store.objects } }

  /// The versions of an object, the oldest first; nil for delete markers.
  package func versions(_ key: String) -> [StoreObject?] {
    state.withLock { $0.store.versions[key]?.map(\.object) ?? [] }
  }

  /// The version ids of a key's delete markers, the newest last.
  package func deleteMarkers(_ key: String) -> [String] {
    state.withLock { ($0.store.versions[key] ?? []).filter { $0.object == nil }.map(\.id) }
  }

  /// What was begun and is neither complete nor aborted, by id.
  package var uploads: [String: StoreUpload] { state.withLock { $0.store.uploads } }

  /// Every request so far, in the order of arrival.
  package var exchanges: [StoreExchange] { state.withLock { $0.exchanges } }

  package func exchanges(_ operation: StoreOperation) -> [StoreExchange] {
    exchanges.filter { $0.operation == operation }
  }

  /// The number of open connections.
  package var connections: Int { listener.connections }

  /// All bytes of bodies that were received: what a client has sent, as far as it arrived.
  package var bytesReceived: Int64 { exchanges.reduce(0) { $0 + $1.bodyLength } }

  /// Lets `script` decide about every request from now on.
  package func script(_ script: @escaping Script) {
    state.withLock { $0.script = script }
  }

  /// The same faults for each request for `operation`; none for others.
  package func always(_ operation: StoreOperation, _ faults: StoreFault...) {
    script { $0.operation == operation ? faults : [] }
  }

  /// Puts an object there, as if somebody else had.
  @discardableResult
  package func put(_ key: String, _ object: StoreObject) -> StoreObject {
    state.withLock { $0.store.put(key, object) }
  }

  @discardableResult
  package func put(_ key: String, bytes: [UInt8]) -> StoreObject {
    put(key, StoreObject(pieces: [StorePiece(bytes: bytes)]))
  }

  /// An object of any size that needs no memory.
  @discardableResult
  package func put(_ key: String, _ content: OriginContent, size: Int64) -> StoreObject {
    put(key, StoreObject(pieces: [StorePiece(.generated(content, 0..<size), size: size)]))
  }

  /// An object of zeros, which costs neither memory nor time.
  @discardableResult
  package func put(_ key: String, zeros size: Int64) -> StoreObject {
    put(key, StoreObject(pieces: [StorePiece(.zeros, size: size)]))
  }

  package func delete(_ key: String) {
    state.withLock { _ = $0.store.delete(key) }
  }

  /// Forgets an upload, as stores do after some days.
  package func expire(_ id: String) {
    state.withLock { $0.store.uploads[id] = nil }
  }

  /// The first exchange, past or future, that meets `predicate` when it begins, when a piece of its body has arrived,
  /// when it is answered, or when it ends.
  package func first(where predicate: @escaping @Sendable (StoreExchange) -> Bool) async -> StoreExchange {
    await withCheckedContinuation { continuation in
      let found = state.withLock { state in
        let found = state.exchanges.first(where: predicate)
        if found == nil { state.waiting.append((predicate, continuation)) }
        return found
      }
      if let found { continuation.resume(returning: found) }
    }
  }

  /// Ends every connection and waits for the threads. Objects, uploads and exchanges stay readable.
  package func close() {
    guard listener.close() else { return }
    // The script may hold a reference to the server.
    state.withLock { $0.script = nil }
  }
}

// The calls of connections to their server.
extension StoreServer {
  /// Records the request and asks the script.
  func begin(_ head: OriginRequest, connection: Int) -> (exchange: Int, StoreRequest, [StoreFault]) {
    let (exchange, request, script) = state.withLock { state in
      var request = StoreRequest(head)
      request.connection = connection
      state.ordinals[request.operation, default: 0] += 1
      request.ordinal = state.ordinals[request.operation] ?? 0
      let target = "\(request.operation) \(request.target)"
      state.attempts[target, default: 0] += 1
      request.attempt = state.attempts[target] ?? 0
      state.exchanges.append(StoreExchange(request: request))
      return (state.exchanges.count - 1, request, state.script)
    }
    let faults = script?(request) ?? []
    update(exchange) { _ in }
    return (exchange, request, faults)
  }

  /// An empty body for `request`.
  func body(of request: StoreRequest) -> (StoreBody, checksums: Set<StoreChecksum>) {
    state.withLock { state in
      var checksums = Set(request.checksums.keys)
      if let upload = request.uploadID.flatMap({ state.store.uploads[$0] }) {
        if let kind = upload.checksum { checksums.insert(kind) }
      }
      for name in ["x-amz-sdk-checksum-algorithm", "upload-checksum"] {
        let algorithm = request[name]?.lowercased().split(separator: " ").first.map(String.init)
        if let kind = algorithm.flatMap({ StoreChecksum(rawValue: $0) }) { checksums.insert(kind) }
      }
      let limit = request.operation.hasContent ? state.store.options.keepsBodiesUpTo : 16 << 20
      let body = StoreBody(
        limit: limit, expected: request.contentLength, checksums: checksums)
      return (body, checksums)
    }
  }

  /// The answer that comes instead of doing what was asked.
  func refusal(of request: StoreRequest, _ faults: [StoreFault]) -> OriginResponse? {
    state.withLock { Self.refusal(of: request, faults, &$0.store) }
  }

  private static func refusal(
    of request: StoreRequest, _ faults: [StoreFault], _ store: inout StoreState
  ) -> OriginResponse? {
    for fault in faults { if let response = fault.refusal(of: request, in: &store) { return response } }
    guard request.operation.isS3 else { return nil }
    return StoreAuthorization.refusal(of: request, store, clockSkew: faults.clockSkew)
  }

  /// Does what `request` asks, unless it is refused.
  func answer(_ exchange: Int, _ request: StoreRequest, _ faults: [StoreFault], _ body: StorePiece) -> OriginResponse {
    var (response, wasApplied) = state.withLock { state in
      if let refusal = Self.refusal(of: request, faults, &state.store) { return (refusal, false) }
      let call = StoreCall(request: request, body: body, faults: faults, origin: url())
      let operation = request.operation
      let response =
        operation.isS3
        ? call.answerS3(&state.store) : operation.isTus ? call.answerTus(&state.store) : call.answerPut(&state.store)
      return (response, response.status < 300)
    }
    for fault in faults { fault.change(&response, to: request) }
    if request.method == "HEAD" { response.body = [] }
    update(exchange) { $0.wasApplied = wasApplied }
    return response
  }

  /// Keeps what arrived of a body before the connection ended, as tus servers do, and some others.
  func cut(_ request: StoreRequest, _ body: StorePiece, _ faults: [StoreFault]) {
    if faults.keepsCut { put(request.key, StoreObject(pieces: [body])) }
    guard request.operation == .tusPatch, request["upload-checksum"] == nil else { return }
    state.withLock { state in
      _ = StoreCall(request: request, body: body, faults: [], origin: url()).answerTus(&state.store)
    }
  }

  func update(_ exchange: Int, _ change: (inout StoreExchange) -> Void) {
    let (now, waiting) = state.withLock { state in
      change(&state.exchanges[exchange])
      let now = state.exchanges[exchange]
      let waiting = state.waiting.filter { $0.predicate(now) }
      if !waiting.isEmpty { state.waiting.removeAll { $0.predicate(now) } }
      return (now, waiting)
    }
    for (_, continuation) in waiting { continuation.resume(returning: now) }
  }
}
