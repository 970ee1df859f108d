import Glibc
import ReelhaulSystem

/// One accepted connection, on its own thread.
struct StoreConnection {
  let stream: StoreStream
  let server: StoreServer

  private static let count = Lock(0)

  /// Answers requests until either side ends the connection.
  func serve() {
    let number = Self.count.withLock { count in
      count += 1
      return count
    }
    while let head = stream.readHead() {
      let (exchange, request, faults) = server.begin(head, connection: number)
      let isUsable = serve(exchange, request, faults)
      server.update(exchange) { $0.isFinished = true }
      if !isUsable || request["connection"]?.lowercased() == "close" { return }
    }
  }

  /// Returns whether the connection can carry another request.
  private func serve(_ exchange: Int, _ request: StoreRequest, _ faults: [StoreFault]) -> Bool {
    if faults.closesBeforeReading { return false }
    if request.expectsContinue, server.options.honoursExpect, !faults.sendsNoContinue {
      if !faults.refusesLater, var refusal = server.refusal(of: request, faults) {
        if faults.answersFirst {
          return send(refusal, exchange, request, faults) && stream.read(request.contentLength ?? 0) { _ in true }
        }
        let isKept = refusal["Connection"] == "keep-alive"
        if !isKept { refusal["Connection"] = "close" }
        return send(refusal, exchange, request, faults) && isKept
      }
      guard LoopbackServer.send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8), to: stream.socket) else { return false }
    }
    let (body, checksums) = server.body(of: request)
    guard receive(body, exchange, request, faults) else {
      server.cut(request, body.piece(checksums: checksums), faults)
      return false
    }
    return send(
      server.answer(exchange, request, faults, body.piece(checksums: checksums)), exchange, request, faults)
  }

  /// Reads the whole body. Returns false if it ended before.
  private func receive(_ body: StoreBody, _ exchange: Int, _ request: StoreRequest, _ faults: [StoreFault]) -> Bool {
    /// The stops in the body, in order: the connection ends where the gate is not passed.
    var stops: [(at: Int64, passes: () -> Bool)] = faults.compactMap { fault in
      switch fault {
      case .closeAfter(let bytes): (bytes, { false })
      case .holdBody(let bytes, let gate): (bytes, { gate.pass(stream.socket) })
      case .refuseAfter(let bytes): (bytes, { refuse(exchange, request, faults) })
      default: nil
      }
    }
    stops.sort { $0.at < $1.at }
    func pass() -> Bool {
      while let stop = stops.first, stop.at <= body.size {
        stops.removeFirst()
        guard stop.passes() else { return false }
      }
      return true
    }
    func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
      var rest = bytes[...]
      while !rest.isEmpty {
        guard pass() else { return false }
        let count = min(rest.count, stops.first.map { Int($0.at - body.size) } ?? rest.count)
        body.append(UnsafeRawBufferPointer(rebasing: rest.prefix(count)))
        rest = rest.dropFirst(count)
        server.update(exchange) { $0.bodyLength = body.size }
      }
      return pass()
    }
    guard pass() else { return false }
    guard let length = request.contentLength else { return stream.readChunks(take) }
    return stream.read(length, take)
  }

  /// Refuses the request, and waits until the client ends the connection.
  private func refuse(_ exchange: Int, _ request: StoreRequest, _ faults: [StoreFault]) -> Bool {
    guard let refusal = server.refusal(of: request, faults) else { return true }
    return send(refusal, exchange, request, faults) && OriginGate().pass(stream.socket)
  }

  /// Returns whether the connection can carry another request.
  private func send(
    _ response: OriginResponse, _ exchange: Int, _ request: StoreRequest, _ faults: [StoreFault]
  ) -> Bool {
    for fault in faults {
      switch fault {
      case .delay(let milliseconds):
        var end = pollfd(fd: stream.socket, events: OriginConnection.hangUp, revents: 0)
        guard poll(&end, 1, Int32(milliseconds)) == 0 else { return false }
      case .holdAnswer(let gate): guard gate.pass(stream.socket) else { return false }
      default: break
      }
    }
    if faults.closesAfterApplying { return false }
    if faults.cutsHead {
      _ = LoopbackServer.send(Array(response.head.prefix(20)), to: stream.socket)
      return false
    }
    // Before it is sent: who has got it may look.
    server.update(exchange) { $0.status = response.status }
    guard LoopbackServer.send(response.head, to: stream.socket) else {
      server.update(exchange) { $0.status = nil }
      return false
    }
    for step in response.body where !send(step) { return false }
    return response["Connection"] != "close"
  }

  private func send(_ step: OriginResponse.Step) -> Bool {
    switch step {
    case .bytes(let bytes): return LoopbackServer.send(bytes, to: stream.socket)
    case .content(let content, let range):
      for start in stride(from: range.lowerBound, to: range.upperBound, by: 1 << 18) {
        let piece = content.bytes(start..<min(range.upperBound, start + 1 << 18))
        guard LoopbackServer.send(piece, to: stream.socket) else { return false }
      }
      return true
    case .hold(let gate): return gate.pass(stream.socket)
    case .pace, .install: return true
    case .close, .reset: return false
    }
  }
}
