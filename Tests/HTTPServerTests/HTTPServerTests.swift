import HTTPServer
import ReelhaulSystem
import TestKit
import Testing

@Suite struct HTTPServerTests {
  /// Echoes what it was asked, and streams below `/stream`.
  private struct Echo: HTTPHandler {
    let loop: EventLoop
    let begun = Lock(false)
    let canceled = Lock(false)
    let dropped = Lock(false)

    func admit(_ head: HTTPRequest) async -> HTTPAdmission {
      head.path == "/refused" ? .refused(.problem(401, "not here")) : .body(limit: 1000)
    }

    func answer(_ request: HTTPRequest) async -> HTTPResponse {
      switch request.path {
      case "/slow":
        begun.withLock { $0 = true }
        do {
          try await loop.sleep(for: .seconds(30))
        } catch {
          canceled.withLock { $0 = true }
        }
        return HTTPResponse(204)
      case "/stream":
        return HTTPResponse(
          headers: ["Content-Type": "text/plain"],
          body: .stream { [self] stream in
            for number in 0..<3 { stream.send(Array("\(number)\n".utf8)) }
            _ = self
          })
      case "/flood":
        return HTTPResponse(
          body: .stream { [loop, dropped] stream in
            let bytes = [UInt8](repeating: 65, count: 8 << 10)
            while stream.send(bytes) { try? await loop.sleep(for: .milliseconds(1)) }
            dropped.withLock { $0 = true }
          })
      default:
        let body = String(decoding: request.body, as: UTF8.self)
        return HTTPResponse(type: "text/plain", Array("\(request.method) \(request.target) \(body)".utf8))
      }
    }
  }

  private func serve(
    _ settings: HTTPServer.Settings = HTTPServer.Settings(),
    _ body: @Sendable (Int, Echo, HTTPServer) async throws -> Void
  ) async throws {
    let loop = EventLoop(name: "http")
    let echo = Echo(loop: loop)
    let server = HTTPServer(loop: loop, settings: settings, handler: echo)
    let port = try await server.start()
    do {
      try await body(port, echo, server)
    } catch {
      await server.stop(within: .zero)
      loop.shutdown()
      throw error
    }
    await server.stop(within: .zero)
    loop.shutdown()
  }

  private static let get = "GET / HTTP/1.1\r\nHost: a\r\n"
  private static let post = "POST / HTTP/1.1\r\nHost: a\r\n"

  @Test(
    "what is no request of HTTP/1.1 is refused with its status, and the connection ends",
    arguments: [
      ("GET / HTTP/1.1\r\n\r\n", 400), ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
      ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505), ("GET / HTTP/1.1\nHost: a\n\n", 400),
      ("GET /\u{1}x HTTP/1.1\r\nHost: a\r\n\r\n", 400), ("\(get)X : a\r\n\r\n", 400), ("\(get)X: a\r\n b\r\n\r\n", 400),
      ("\(get)Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n", 400),
      ("\(post)Content-Type: text/plain\r\ncontent-type: application/json\r\n\r\n", 400),
      ("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", 400), ("GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
      ("\(get)X:\r\n b\r\n\r\n", 400), ("\(get)X:\r\n\tb\r\n\r\n", 400), ("\(get)\n", 400), ("\(get)X: a\n\r\n", 400),
      ("\(get)X: a\u{0}b\r\n\r\n", 400), ("G@T / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
      ("\(post)Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
      ("\(post)Content-Length: +1\r\n\r\na", 400), ("\(post)Content-Length: 1x\r\n\r\na", 400),
      ("\(post)Content-Length: 99999999999999999999999\r\n\r\n", 400),
      ("\(post)Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
      ("\(post)Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400),
      ("\(post)Transfer-Encoding: gzip\r\n\r\n", 501), ("\(post)Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
      ("\(post)Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
      ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
      ("\(post)Transfer-Encoding: chunked\r\n\r\nx\r\n", 400),
      ("\(post)Transfer-Encoding: chunked\r\n\r\n1\r\nabc", 400),
      ("\(post)Content-Length: 1001\r\n\r\n", 413), ("\(post)Transfer-Encoding: chunked\r\n\r\n3e9\r\n", 413),
      ("\(post)Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400),
      ("\(post)Expect: a miracle\r\nContent-Length: 1\r\n\r\n", 417),
      ("GET /\(String(repeating: "a", count: 9000)) HTTP/1.1\r\nHost: a\r\n\r\n", 414),
      ("\(get)X: \(String(repeating: "a", count: 17_000))\r\n\r\n", 431),
      ("\(get)\(String(repeating: "X: a\r\n", count: 65))\r\n", 431),
      ("\(get)\(String(repeating: "X", count: 17_000))", 431),
      ("\(post)Transfer-Encoding: chunked\r\n\r\n0\r\nX: \(String(repeating: "a", count: 17_000))", 431),
    ]) func refused(text: String, status: Int) async throws
  {
    try await serve { port, _, _ in
      let client = try RawClient(port: port)
      client.send(text)
      let answer = client.receive()
      #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(text.prefix(200)): \(answer)")
      #expect(answer.contains("Connection: close") && answer.contains("application/problem+json"))
      // However the bytes arrive.
      let slow = try RawClient(port: port)
      for byte in text.utf8.prefix(400) { slow.send([byte]) }
      if text.utf8.count <= 400 { #expect(slow.receive().hasPrefix("HTTP/1.1 \(status) "), "byte by byte: \(text)") }
    }
  }

  @Test("bodies come by their length and in chunks, byte by byte too") func bodies() async throws {
    try await serve { port, _, _ in
      for text in [
        "\(Self.post)Content-Length: 3\r\n\r\nabc",
        "\(Self.post)Transfer-Encoding: chunked\r\n\r\n1;x=y\r\na\r\n2\r\nbc\r\n0\r\nTrailer: x\r\n\r\n",
      ] {
        for isWhole in [true, false] {
          let client = try RawClient(port: port)
          if isWhole { client.send(text) } else { for byte in text.utf8 { client.send([byte]) } }
          let answer = client.receive { $0.hasSuffix("POST / abc") }
          #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n") && answer.hasSuffix("\r\n\r\nPOST / abc"), "\(answer)")
        }
      }
    }
  }

  @Test("requests that are sent at once are answered in order, and line ends before one are skipped")
  func pipelined() async throws {
    try await serve { port, _, _ in
      let client = try RawClient(port: port)
      var text = "\r\n\r\n"
      for number in 0..<50 {
        text += "POST /\(number) HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n\(number % 10)x"
      }
      client.send(text + "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      let bodies = client.receive().components("\r\n\r\n").dropFirst().map { $0.prefix { $0 != "H" } }
      #expect(bodies.count == 51 && bodies.last == "GET /last ")
      #expect(bodies.dropLast().enumerated().allSatisfy { $1 == "POST /\($0) \($0 % 10)x" })
    }
  }

  @Test("a target may be the whole URL of its host")
  func wholeURL() async throws {
    try await serve { port, _, _ in
      for (target, path) in [
        ("http://a/x?y=http://b/", "/x?y=http://b/"), ("HTTPS://A", "/"), ("http://a?y", "/?y"), ("/x://a", "/x://a"),
      ] {
        let client = try RawClient(port: port)
        client.send("GET \(target) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        #expect(client.receive().hasSuffix("\r\n\r\nGET \(path) "))
      }
    }
  }

  @Test("HEAD has the head of GET and no body; 204 has no length") func heads() async throws {
    try await serve { port, _, _ in
      let client = try RawClient(port: port)
      client.send("HEAD /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      let answer = client.receive()
      #expect(answer.contains("Content-Length: 8\r\n") && answer.hasSuffix("\r\n\r\n"))
    }
  }

  @Test("a body that waits for 100-continue is asked for, unless its head is refused") func continues() async throws {
    try await serve { port, _, _ in
      let client = try RawClient(port: port)
      client.send("\(Self.post)Expect: 100-continue\r\nContent-Length: 3\r\n\r\n")
      #expect(client.receive { $0.hasSuffix("\r\n\r\n") } == "HTTP/1.1 100 Continue\r\n\r\n")
      client.send("abc")
      #expect(client.receive { $0.hasSuffix("abc") }.hasSuffix("POST / abc"))
      let refused = try RawClient(port: port)
      refused.send("POST /refused HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
      #expect(refused.receive().hasPrefix("HTTP/1.1 401 Unauthorized\r\n"))
    }
  }

  @Test("heads, bodies and pauses have a time limit, and one connection does not outlive it by trickling")
  func slow() async throws {
    var settings = HTTPServer.Settings()
    settings.head = .seconds(3)
    settings.body = .seconds(1)
    settings.idle = .seconds(1)
    try await serve(settings) { port, _, _ in
      let silent = try RawClient(port: port)
      let trickling = try RawClient(port: port)
      for byte in "GET / HTTP".utf8 {
        trickling.send([byte])
        try await Task.sleep(for: .milliseconds(300))
      }
      #expect(trickling.receive().hasPrefix("HTTP/1.1 408 "))
      #expect(silent.receive() == "")
      let bodiless = try RawClient(port: port)
      bodiless.send("\(Self.post)Content-Length: 3\r\n\r\na")
      #expect(bodiless.receive().hasPrefix("HTTP/1.1 408 "))
      let idle = try RawClient(port: port)
      idle.send("\(Self.get)\r\n")
      #expect(idle.receive().hasPrefix("HTTP/1.1 200 "))
    }
  }

  @Test("a client that goes cancels its request") func gone() async throws {
    try await serve { port, echo, _ in
      let client = try RawClient(port: port)
      client.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
      try await eventually("the request has begun") { echo.begun.withLock { $0 } }
      client.finish()
      #expect(client.receive() == "")
      try await eventually("it is canceled") { echo.canceled.withLock { $0 } }
    }
  }

  @Test("a stream is sent as it comes, and one that nobody reads is dropped") func streams() async throws {
    try await serve { port, echo, server in
      let client = try RawClient(port: port)
      client.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(client.receive().hasSuffix("\r\n\r\n0\n1\n2\n"))
      let flooded = try RawClient(port: port)
      flooded.send("GET /flood HTTP/1.1\r\nHost: a\r\n\r\n")
      try await eventually("it is dropped") { echo.dropped.withLock { $0 } }
      _ = flooded
      _ = server
    }
  }

  @Test("more connections than are allowed are closed at once") func limited() async throws {
    var settings = HTTPServer.Settings()
    settings.connections = 2
    try await serve(settings) { port, _, _ in
      let (first, second) = (try RawClient(port: port), try RawClient(port: port))
      first.send("\(Self.get)\r\n")
      #expect(first.receive { $0.hasSuffix("GET / ") }.hasPrefix("HTTP/1.1 200"))
      #expect(try RawClient(port: port).receive() == "")
      _ = second
    }
  }

  @Test("paths are decoded after they are split, and wrong escapes are refused") func paths() throws {
    #expect(HTTPRequest(target: "/v1/a%20b/%C3%A9?x=%2F&y=1+2&z").segments == ["v1", "a b", "é"])
    for path in ["/a%2Fb", "/%", "/%zz", "/%00", "/%ff", "/a/..", "/./a"] {
      #expect(HTTPRequest(target: path).segments == nil, "\(path)")
    }
    let query = try HTTPRequest(target: "/?x=%2F&y=1+2&z").query
    #expect(query.map(\.name) == ["x", "y", "z"] && query.map(\.value) == ["/", "1 2", ""])
    #expect(throws: HTTPError.self) { try HTTPRequest(target: "/?x=%f").query }
  }

  @Test("bytes without meaning crash nothing and are answered or cut") func mutated() async throws {
    var settings = HTTPServer.Settings()
    settings.head = .seconds(1)
    try await serve(settings) { port, _, _ in
      var random = SplitMix64(seed: 7)
      let seeds = [
        "\(Self.post)Content-Length: 3\r\n\r\nabc",
        "\(Self.post)Transfer-Encoding: chunked\r\n\r\n1;x=y\r\na\r\n2\r\nbc\r\n0\r\nTrailer: x\r\n\r\n",
        "\(Self.get)Upgrade: h2c\r\nConnection: upgrade\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
      ]
      for _ in 0..<2000 {
        var bytes = Array(seeds[Int.random(in: 0..<seeds.count, using: &random)].utf8)
        for _ in 0..<Int.random(in: 1...4, using: &random) {
          let place = Int.random(in: 0..<bytes.count, using: &random)
          switch Int.random(in: 0..<3, using: &random) {
          case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
          case 1: bytes.remove(at: place)
          default: bytes.insert(contentsOf: bytes[place..<min(bytes.count, place + 8)], at: place)
          }
        }
        let client = try RawClient(port: port)
        client.send(bytes)
      }
      let client = try RawClient(port: port)
      client.send("\(Self.get)\r\n")
      #expect(client.receive { $0.hasSuffix("GET / ") }.hasPrefix("HTTP/1.1 200"))
    }
  }
}

extension String {
  fileprivate func components(_ separator: String) -> [Substring] {
    var parts: [Substring] = []
    var rest = self[...]
    while let range = rest.firstRange(of: separator) {
      parts.append(rest[..<range.lowerBound])
      rest = rest[range.upperBound...]
    }
    return parts + [rest]
  }
}
