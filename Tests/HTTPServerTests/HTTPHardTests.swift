import HTTPServer
import ReelhaulSystem
import TestKit
import Testing

/// Clients that mean no good, and very many of them.
@Suite struct HTTPHardTests {
  private struct Handler: HTTPHandler {
    let loop: EventLoop
    let seen = Lock<[String]>([])

    func admit(_ head: HTTPRequest) async -> HTTPAdmission { .body(limit: 1000) }

    func answer(_ request: HTTPRequest) async -> HTTPResponse {
      seen.withLock { $0.append("\(request.method) \(request.target)") }
      return HTTPResponse(type: "text/plain", Array("ok".utf8))
    }
  }

  private func serve(
    _ settings: HTTPServer.Settings = HTTPServer.Settings(),
    _ body: @Sendable (Int, Handler, HTTPServer) async throws -> Void
  ) async throws {
    let loop = EventLoop(name: "http")
    defer { loop.shutdown() }
    let handler = Handler(loop: loop)
    let server = HTTPServer(loop: loop, settings: settings, handler: handler)
    let port = try await server.start()
    do {
      try await body(port, handler, server)
    } catch {
      await server.stop(within: .zero)
      throw error
    }
    await server.stop(within: .zero)
  }

  private static let head = "POST / HTTP/1.1\r\nHost: a\r\n"
  private static let hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"

  @Test(
    "what two servers could read as one request and as two is refused, and nothing behind it is answered",
    arguments: [
      "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
      "Content-Length: 0\r\nContent-Length: 40\r\n\r\n", "Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
      "Content-Length: 0, 40\r\n\r\n", "Content-Length: -1\r\n\r\n", "Content-Length: 0x10\r\n\r\n",
      "Content-Length : 0\r\n\r\n", "Content-Length:\r\n 0\r\n\r\n",
      "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
      "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
      "Transfer-Encoding: \u{B}chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
      "Transfer-Encoding: chunked\n\r\n0\r\n\r\n", "X: a\rTransfer-Encoding: chunked\r\n\r\n",
      "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
      "Transfer-Encoding: chunked\r\n\r\n0;a\n\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n1;a\nX\r\n0\r\n\r\n",
      "Transfer-Encoding: chunked\r\n\r\n1\nX\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n1\r\nX\n0\r\n\r\n",
      "Transfer-Encoding: chunked\r\n\r\n0x1\r\nX\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
      "Transfer-Encoding: chunked\r\n\r\n 0\r\n\r\n",
      "Transfer-Encoding: chunked\r\n\r\n1;\(String(repeating: "a", count: 5000))\r\nX\r\n0\r\n\r\n",
    ]) func smuggling(rest: String) async throws
  {
    try await serve { port, handler, _ in
      let client = try RawClient(port: port)
      client.send(Self.head + rest + Self.hidden)
      let answer = client.receive()
      #expect(answer.hasPrefix("HTTP/1.1 400 ") || answer.hasPrefix("HTTP/1.1 501 "), "\(answer)")
      #expect(answer.contains("Connection: close") && handler.seen.withLock { $0.isEmpty })
    }
  }

  @Test("ten thousand clients that do nothing cost little, and another one is answered") func idle() async throws {
    let count = min(10_000, FileLimit.raise() / 2 - 500)
    var settings = HTTPServer.Settings()
    settings.head = .seconds(600)
    try await serve(settings) { port, handler, server in
      let before = try resident()
      var clients: [RawClient] = []
      for _ in 0..<count { clients.append(try RawClient(port: port)) }
      #expect(try await connections(of: server, on: handler.loop, reach: count) == count)
      // With the clients' own share.
      #expect(try resident() - before < 256 << 20)
      let client = try RawClient(port: port)
      client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(client.receive { $0.hasSuffix("ok") }.hasPrefix("HTTP/1.1 200"))
      // A half of them goes, the others send half a request.
      clients.removeFirst(count / 2)
      for client in clients { client.send("GET / HT") }
      client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(client.receive { $0.hasSuffix("ok") }.hasPrefix("HTTP/1.1 200"))
    }
  }

  @Test("a client that has closed its sending side, and one that is gone without a word, hold nothing for long")
  func halfOpen() async throws {
    var settings = HTTPServer.Settings()
    settings.head = .seconds(3)
    try await serve(settings) { port, handler, server in
      let (half, silent) = (try RawClient(port: port), try RawClient(port: port))
      half.send("GET / HTTP/1.1\r\nHost: a\r\n")
      half.finish()
      #expect(half.receive() == "")
      #expect(try await connections(of: server, on: handler.loop, reach: 0) == 0)
      _ = silent
    }
  }

  /// Waits until the server has so many connections, and returns how many it has.
  private func connections(of server: HTTPServer, on loop: EventLoop, reach count: Int) async throws -> Int {
    for _ in 0..<1000 {
      let now = try await loop.task { server.connectionCount }.value
      if now == count { return now }
      try await Task.sleep(for: .milliseconds(20))
    }
    return try await loop.task { server.connectionCount }.value
  }

  private func resident() throws -> Int {
    let text = try TextFile.read("/proc/self/statm")
    return (Int(text.split(separator: " ")[1]) ?? 0) * 4096
  }
}
