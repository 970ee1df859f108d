import Glibc
import TaskCore

/// One accepted connection, on its own thread.
struct OriginConnection {
  let socket: Int32
  let number: Int
  let server: OriginServer

  static let hangUp = Int16(truncatingIfNeeded: 0x2000 | POLLHUP | POLLERR)  // POLLRDHUP

  /// Answers requests until either side ends the connection.
  func serve() {
    var received: [UInt8] = []
    while var request = readRequest(&received) {
      request.connection = number
      let (exchange, response) = server.begin(request)
      let isUsable = send(response, exchange: exchange, path: request.path)
      server.finish(exchange)
      if !isUsable || request["connection"]?.lowercased() == "close" { return }
    }
  }

  private func readRequest(_ received: inout [UInt8]) -> OriginRequest? {
    while true {
      if let end = endOfHead(received) {
        defer { received.removeFirst(end) }
        return OriginRequest(head: String(decoding: received[..<end], as: UTF8.self))
      }
      guard received.count < 64 << 10 else { return nil }
      var buffer = [UInt8](repeating: 0, count: 8192)
      let count = recv(socket, &buffer, buffer.count, 0)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return nil }
      received += buffer[..<count]
    }
  }

  private func endOfHead(_ bytes: [UInt8]) -> Int? {
    guard bytes.count >= 4 else { return nil }
    return (4...bytes.count).first { Array(bytes[$0 - 4..<$0]) == [13, 10, 13, 10] }
  }

  /// Returns whether the connection can carry another request.
  private func send(_ response: OriginResponse, exchange: Int, path: String) -> Bool {
    var pace = Pace(left: response.length)
    for step in response.prelude where !run(step, &pace, response, exchange, path) { return false }
    if pace.left == 0 { server.ends(exchange) }
    guard send(response.head) else { return false }
    server.update(exchange) { $0.status = response.status }
    for step in response.body where !run(step, &pace, response, exchange, path) { return false }
    return response.isChunked ? send(Array("0\r\n\r\n".utf8)) : response["Content-Length"] != nil
  }

  private struct Pace {
    /// The bytes of the body that are still to be sent.
    var left: Int64
    /// In bytes per second.
    var rate: Int?
  }

  private func run(
    _ step: OriginResponse.Step, _ pace: inout Pace, _ response: OriginResponse, _ exchange: Int, _ path: String
  ) -> Bool {
    switch step {
    case .bytes(let bytes): return sendBody(bytes, &pace, response, exchange)
    case .content(let content, let range):
      var next = range.lowerBound
      while next < range.upperBound {
        let piece = next..<min(range.upperBound, next + Int64(min(pace.rate ?? 65536, 65536)))
        guard sendBody(content.bytes(piece), &pace, response, exchange) else { return false }
        server.update(exchange) { $0.sent.insert(piece) }
        next = piece.upperBound
      }
      return true
    case .pace(let bytesPerSecond):
      pace.rate = bytesPerSecond
      return true
    case .hold(let gate): return gate.pass(socket)
    case .install(let file):
      server.serve(path, file)
      return true
    case .close: return false
    case .reset:
      var now = linger(l_onoff: 1, l_linger: 0)
      setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
      return false
    }
  }

  /// Sends `bytes` of a body at the rate of `pace`, and gives up when the client leaves.
  private func sendBody(_ bytes: [UInt8], _ pace: inout Pace, _ response: OriginResponse, _ exchange: Int) -> Bool {
    guard !bytes.isEmpty else { return true }
    pace.left -= Int64(bytes.count)
    if pace.left == 0 { server.ends(exchange) }
    let size = Array("\(String(bytes.count, radix: 16))\r\n".utf8)
    guard send(response.isChunked ? size + bytes + [13, 10] : bytes) else { return false }
    guard let rate = pace.rate else { return true }
    var end = pollfd(fd: socket, events: Self.hangUp, revents: 0)
    return poll(&end, 1, Int32(bytes.count * 1000 / max(1, rate))) == 0
  }

  private func send(_ bytes: [UInt8]) -> Bool {
    LoopbackServer.send(bytes, to: socket)
  }
}
