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

  let peer: String
  private let stream: LoopStream
  private let loop: EventLoop
  private let server: HTTPServer
  private let parser = RequestParser()
  private var state = State.reading
  /// When the connection is given up.
  private(set) var deadline: BootInstant
  private(set) var isStreaming = false

  /// While a request is answered, so much of the next ones is read.
  private static let mostAhead = 64 << 10

  init(_ stream: LoopStream, loop: EventLoop, server: HTTPServer) {
    self.stream = stream
    self.loop = loop
    self.server = server
    peer = stream.peer
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
    case (.bytes(let bytes), .handling):
      parser.keep(bytes)
      // One that sends without end waits in the kernel, and so does its end.
      if parser.pending > Self.mostAhead { stream.setReading(false) }
    case (.bytes, .closing), (.bytes, .closed): break
    }
  }

  private func handle(_ progress: RequestParser.Progress) {
    switch progress {
    case .head: break
    case .body: deadline = .now + server.settings.body
    case .announced(var request, let expectsContinue):
      request.peer = peer
      perform { [self, request] in
        let admission = await server.handler.admit(request)
        guard case .handling = state else { return }
        switch admission {
        case .refused(let response): send(response, to: request, keepsAlive: false)
        case .body(let limit):
          state = .reading
          deadline = .now + server.settings.body
          if expectsContinue { stream.write(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) }
          stream.setReading(true)
          handle(parser.proceed(limit: limit))
        }
      }
    case .request(var request, let keepsAlive):
      request.peer = peer
      perform { [self, request] in
        let response = await server.handler.answer(request)
        guard case .handling = state else { return }
        send(response, to: request, keepsAlive: keepsAlive && !server.isDraining)
      }
    case .failed(let error):
      send(server.handler.refusal(error), to: HTTPRequest(target: "/"), keepsAlive: false)
    }
  }

  private func perform(_ body: @escaping @Sendable () async -> Void) {
    deadline = .distantFuture
    state = .handling(loop.task { await body() })
  }

  private func send(_ response: HTTPResponse, to request: HTTPRequest, keepsAlive: Bool) {
    deadline = .now + server.settings.write
    switch response.body {
    case .bytes(let bytes):
      var head = head(response, keepsAlive: keepsAlive)
      // An answer without a body has no length either.
      if response.status != 204, response.status != 304 { head += "Content-Length: \(bytes.count)\r\n" }
      let hasBody = request.method != "HEAD" && response.status != 204 && response.status != 304
      let message = Array((head + "\r\n").utf8) + (hasBody ? bytes : [])
      if !keepsAlive { state = .closing }
      stream.write(message) { [self] in keepsAlive ? answered() : finish() }
    case .stream(let write):
      stream.boundSendBuffer(Int32(HTTPStream.most))
      stream.write(Array((head(response, keepsAlive: false) + "\r\n").utf8))
      guard request.method != "HEAD" else { return finish() }
      deadline = .distantFuture
      isStreaming = true
      let open = HTTPStream(stream) { [weak self] in self?.close() }
      state = .handling(
        loop.task { [self] in
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
    deadline = .now + .seconds(1)
    stream.shutdown()
  }

  /// The deadline has passed.
  func expire() {
    if case .reading = state, parser.hasBegun {
      send(
        server.handler.refusal(HTTPError(408, "the request did not come in time")), to: HTTPRequest(target: "/"),
        keepsAlive: false)
    } else {
      close()
    }
  }

  func close() {
    if case .closed = state { return }
    if case .handling(let task) = state { task.cancel() }
    state = .closed
    stream.close()
    server.closed(self)
  }
}
