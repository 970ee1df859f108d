import ReelhaulSystem

/// One connection of a client: its requests are answered one after the other.
// @unchecked: touched only on the loop's thread.
final class HTTPConnection: @unchecked Sendable {
  private enum State {
    /// Waits for a request, or for the rest of one.
    case reading
    case handling(Task<Void, any Error>)
    /// The answer is on its way, and nothing more is read.
    case closing
    case closed
  }

  private let stream: LoopStream
  private let loop: EventLoop
  private let server: HTTPServer
  private let parser = RequestParser()
  private lazy var peer = stream.peer
  private var state = State.reading
  /// When the connection is given up.
  private(set) var deadline: BootInstant
  private(set) var isStreaming = false
  /// When the body must be there.
  private var bodyEnd = BootInstant.distantFuture
  /// Bytes of the body that count among those of all connections.
  private var held = 0
  /// Bytes behind the request, as they count among those of all connections.
  private var ahead = 0
  /// Whether the request is the last one: what comes behind it is not read.
  private var isLast = false
  /// Bytes of the answer that were not read at the last deadline.
  private var unread = Int.max

  /// While a request is answered, so much of the next ones is read.
  private static let mostAhead = 64 << 10
  /// How long a client that has sent all may take to read its last answer.
  private static let farewell = Duration.seconds(1)

  init(_ stream: LoopStream, loop: EventLoop, server: HTTPServer) {
    self.stream = stream
    self.loop = loop
    self.server = server
    deadline = .now + server.settings.head
  }

  func start() {
    stream.start { [self] in received($0) }
  }

  var isIdle: Bool {
    if case .reading = state { return !parser.hasBegun }
    return false
  }

  private func received(_ input: LoopStream.Input) {
    switch (input, state) {
    case (.end, _): close()
    case (.bytes(let bytes), .reading):
      let begins = !parser.hasBegun
      let progress = parser.feed(bytes)
      if begins, parser.hasBegun { deadline = .now + server.settings.head }
      handle(progress)
    case (.bytes, .handling) where isStreaming || isLast: break
    case (.bytes(let bytes), .handling):
      parser.keep(bytes)
      countAhead(parser.pending)
      // One that sends without end waits in the kernel, and so does its end.
      if parser.pending > Self.mostAhead || !server.hasRoomAhead { stream.setReading(false) }
    // One that still sends has not read the answer yet.
    case (.bytes, .closing): deadline = max(deadline, min(.now + Self.farewell, bodyEnd))
    case (.bytes, .closed): break
    }
  }

  private func handle(_ progress: RequestParser.Progress) {
    countAhead(parser.pending)
    switch progress {
    case .head: break
    case .body:
      deadline = min(.now + server.settings.body, bodyEnd)
      hold(parser.bodyBytes)
      if server.held > server.settings.bodies { refuseBusy() }
    case .announced(var request, let expectsContinue):
      request.peer = peer
      perform { [self, request] in
        let admission = await server.handler.admit(request)
        guard case .handling = state else { return }
        switch admission {
        case .refused(let response): send(response, to: request, keepsAlive: false)
        case .body(let limit):
          state = .reading
          bodyEnd = .now + server.settings.wholeBody
          deadline = min(.now + server.settings.body, bodyEnd)
          stream.setReading(true)
          let progress = parser.proceed(limit: limit)
          // Not if its length is refused.
          if expectsContinue, case .body = progress { stream.write(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) }
          handle(progress)
        }
      }
    case .request(var request, let keepsAlive):
      request.peer = peer
      hold(request.body.count)
      guard server.held <= server.settings.bodies else { return refuseBusy() }
      // Where very much waits already, the client sends what is behind this request again.
      isLast = !keepsAlive || parser.pending > 0 && !server.hasRoomAhead
      if isLast {
        parser.drop()
        countAhead(0)
      }
      perform { [self, request] in
        let response = await server.handler.answer(request)
        guard case .handling = state else { return }
        send(response, to: request, keepsAlive: !isLast && !server.isDraining)
      }
    case .failed(let error):
      refuse(error)
    }
  }

  private func perform(_ body: @escaping @Sendable () async -> Void) {
    deadline = .distantFuture
    state = .handling(server.run(body))
  }

  private func hold(_ bytes: Int) {
    server.held += bytes - held
    held = bytes
  }

  private func countAhead(_ bytes: Int) {
    server.ahead += bytes - ahead
    ahead = bytes
  }

  private func refuseBusy() {
    hold(0)
    refuse(HTTPError(503, "too many bytes of requests wait here"))
  }

  private func refuse(_ error: HTTPError, _ request: HTTPRequest? = nil, keepsAlive: Bool = false) {
    var request = request ?? parser.head
    request?.peer = peer
    var response = server.handler.refusal(error, of: request)
    if error.status == 503 { response.headers["Retry-After"] = "1" }
    send(response, to: request ?? HTTPRequest(target: "/"), keepsAlive: keepsAlive)
  }

  private func send(_ response: HTTPResponse, to request: HTTPRequest, keepsAlive: Bool) {
    deadline = .now + server.settings.write
    unread = .max
    switch response.body {
    case .bytes, .problem:
      let bytes = response.bytes ?? []
      var head = head(response, keepsAlive: keepsAlive)
      // An answer without a body has no length either.
      if response.status != 204, response.status != 304 { head += "Content-Length: \(bytes.count)\r\n" }
      let hasBody = request.method != "HEAD" && response.status != 204 && response.status != 304
      // What a request has changed is told in any case.
      let mayTellOfChange = request.method != "GET" && !(400..<500).contains(response.status)
      guard !hasBody || mayTellOfChange || server.hasRoom(for: bytes.count) else {
        let error = HTTPError(503, "too many bytes of answers wait for their readers here: ask for less, or later")
        return refuse(error, request, keepsAlive: keepsAlive)
      }
      let message = Array((head + "\r\n").utf8) + (hasBody ? bytes : [])
      if !keepsAlive {
        state = .closing
        // What still comes gives no time to one that does not read.
        bodyEnd = deadline
      }
      stream.write(message) { [self] in keepsAlive ? answered() : finish() }
    case .stream(let write):
      stream.boundSendBuffer(Int32(HTTPStream.most))
      stream.write(Array((head(response, keepsAlive: false) + "\r\n").utf8))
      guard request.method != "HEAD" else { return finish() }
      deadline = .distantFuture
      isStreaming = true
      // A stream is the last answer.
      parser.drop()
      countAhead(0)
      stream.setReading(true)
      let open = HTTPStream(
        stream, hasRoom: server.hasRoom, gone: { [weak self] in self?.close() },
        waiting: { [weak self] in self?.waitForReader($0) })
      // Answers that are short do not wait for a thousand that go on for hours.
      state = .handling(
        server.run(priority: .utility) { [self] in
          await write(open)
          close()
        })
    }
  }

  private func head(_ response: HTTPResponse, keepsAlive: Bool) -> String {
    var head = "HTTP/1.1 \(response.status) \(HTTPResponse.reason(of: response.status))\r\n"
    for field in response.headers.fields { head += "\(field.name): \(field.value)\r\n" }
    return head + "Date: \(server.date)\r\nConnection: \(keepsAlive ? "keep-alive" : "close")\r\n"
  }

  private func answered() {
    guard case .handling = state else { return }
    state = .reading
    hold(0)
    deadline = .now + server.settings.idle
    parser.reset()
    stream.setReading(true)
    if parser.pending > 0 {
      // After this call, because a client may send many requests at once.
      loop.execute { [self] in
        guard case .reading = state else { return }
        let progress = parser.next()
        if parser.hasBegun { deadline = .now + server.settings.head }
        handle(progress)
      }
    } else if server.isDraining {
      close()
    }
  }

  /// What was sent may not have been read yet, and closing while input waits would take it back.
  private func finish() {
    guard !stream.isClosed else { return }
    state = .closing
    deadline = .now + Self.farewell
    // The rest of a body that was refused, too.
    bodyEnd = .now + server.settings.head
    stream.setReading(true)
    stream.shutdown()
  }

  /// A stream goes on once its client has read what was sent.
  private func waitForReader(_ waits: Bool) {
    guard case .handling = state else { return }
    deadline = waits ? .now + server.settings.write : .distantFuture
    unread = .max
  }

  /// The deadline has passed.
  func expire() {
    if case .reading = state, parser.hasBegun {
      refuse(HTTPError(408, "the request did not come in time"))
    } else if stream.pending > 0, unread == .max || stream.pending + 16 << 10 <= unread {
      unread = stream.pending
      deadline = .now + server.settings.write
    } else {
      close()
    }
  }

  func close() {
    if case .closed = state { return }
    hold(0)
    countAhead(0)
    if case .handling(let task) = state { task.cancel() }
    state = .closed
    stream.close()
    server.closed(self)
  }
}
