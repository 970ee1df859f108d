import HTTPServer
import ReelhaulSystem
import TestKit
import Testing

/// How requests, connections and the server end.
@Suite struct HTTPEndTests {
  private struct Handler: HTTPHandler {
    let loop: EventLoop
    let admitted = Lock(0)
    let begun = Lock(false)
    let ended = Lock(false)

    func admit(_ head: HTTPRequest) async -> HTTPAdmission {
      admitted.withLock { $0 += 1 }
      guard head.path == "/closed" else { return .body(limit: 1000) }
      // By then more of the body has come than is read ahead.
      try? await loop.sleep(for: .milliseconds(200))
      return .refused(HTTPResponse(401))
    }

    func answer(_ request: HTTPRequest) async -> HTTPResponse {
      switch request.path {
      case "/stubborn":
        begun.withLock { $0 = true }
        await Task.detached { try? await Task.sleep(for: .milliseconds(500)) }.value
        ended.withLock { $0 = true }
        return HTTPResponse(204)
      case "/late":
        try? await loop.sleep(for: .milliseconds(2500))
        return HTTPResponse(204)
      case "/ticks":
        return HTTPResponse(
          body: .stream { [loop, ended] stream in
            while stream.send([46]) { try? await loop.sleep(for: .milliseconds(10)) }
            ended.withLock { $0 = true }
          })
      case "/state":
        return HTTPResponse(
          body: .stream { stream in
            let state = [UInt8](repeating: 65, count: 32 << 20)
            stream.send(Array((stream.hasRoom(for: state.count) ? "room" : "none").utf8))
            // Who does not ask is dropped.
            stream.send(state)
          })
      case "/large": return HTTPResponse(type: "text/plain", [UInt8](repeating: 65, count: 32 << 20))
      default: return HTTPResponse(type: "text/plain", Array("\(request.method) \(request.target)".utf8))
      }
    }
  }

  private func serve(
    _ settings: HTTPServer.Settings = HTTPServer.Settings(), endingWithin limit: Duration = .zero,
    _ body: @Sendable (Int, Handler) async throws -> Void
  ) async throws -> Handler {
    let loop = EventLoop(name: "http")
    defer { loop.shutdown() }
    let handler = Handler(loop: loop)
    let server = HTTPServer(loop: loop, settings: settings, handler: handler)
    let port = try await server.start()
    do {
      try await body(port, handler)
    } catch {
      await server.stop(within: .zero)
      throw error
    }
    await server.stop(within: limit)
    return handler
  }

  /// The client of a request that has begun, and does not heed its cancellation.
  private func stubbornRequest(_ port: Int, _ handler: Handler) async throws -> RawClient {
    let client = try RawClient(port: port)
    client.send("GET /stubborn HTTP/1.1\r\nHost: a\r\n\r\n")
    try await eventually("the request has begun") { handler.begun.withLock { $0 } }
    return client
  }

  @Test("the server ends after the last of its requests, also of one that does not heed its cancellation")
  func stubborn() async throws {
    let handler = try await serve { port, handler in
      _ = try await stubbornRequest(port, handler)
    }
    #expect(handler.ended.withLock { $0 })
  }

  @Test("a request that is answered within the time of the server's end gets its answer") func ending() async throws {
    let client = Lock<RawClient?>(nil)
    _ = try await serve(endingWithin: .seconds(10)) { port, handler in
      let asking = try await stubbornRequest(port, handler)
      client.withLock { $0 = asking }
    }
    #expect(client.withLock { $0 }?.receive().hasPrefix("HTTP/1.1 204 ") == true)
  }

  @Test("an answer may take longer than a head may") func late() async throws {
    var settings = HTTPServer.Settings()
    settings.head = .milliseconds(500)
    _ = try await serve(settings) { port, _ in
      let client = try RawClient(port: port)
      client.send("GET /late HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      #expect(client.receive().hasPrefix("HTTP/1.1 204 "))
    }
  }

  @Test("a client that goes on sending behind its last answer is given up") func sendsOn() async throws {
    var settings = HTTPServer.Settings()
    settings.head = .seconds(2)
    _ = try await serve(settings) { port, _ in
      let client = try RawClient(port: port)
      client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      #expect(client.receive().hasPrefix("HTTP/1.1 200 "))
      try await eventually("nothing more is taken", within: .seconds(20), every: .milliseconds(250)) {
        !client.send([97])
      }
    }
  }

  @Test("what is sent without end behind a request waits in the kernel until that is answered")
  func endless() async throws {
    let hadEnded = Lock<Bool?>(nil)
    _ = try await serve { port, handler in
      let client = try await stubbornRequest(port, handler)
      // The kernel keeps less than that.
      Thread(name: "sender") {
        client.send([UInt8](repeating: 65, count: 32 << 20))
        let ended = handler.ended.withLock { $0 }
        hadEnded.withLock { $0 = ended }
      }.detach()
      try await eventually("all is sent", within: .seconds(60)) { hadEnded.withLock { $0 != nil } }
    }
    #expect(hadEnded.withLock { $0 } == true)
  }

  @Test("a stream ends when its client goes, also if the client had sent more than was read")
  func goneWhileStreaming() async throws {
    _ = try await serve { port, handler in
      do {
        let client = try RawClient(port: port)
        client.send("GET /ticks HTTP/1.1\r\nHost: a\r\n\r\n")
        _ = client.receive { $0.hasSuffix("..") }
        client.send([UInt8](repeating: 65, count: 200 << 10))
      }
      try await eventually("the stream has ended") { handler.ended.withLock { $0 } }
    }
  }

  @Test(
    "a request that asks for another protocol is answered in this one, and so is the next",
    arguments: ["GET /1 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"])
  func upgrade(first: String) async throws {
    _ = try await serve { port, _ in
      let second = "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n"
      let client = try RawClient(port: port)
      client.send(first + second)
      let answer = client.receive { $0.hasSuffix("GET /2") }
      #expect(answer.contains("GET /1HTTP/1.1 200") && answer.hasSuffix("GET /2"), "\(answer)")
      let waiting = try RawClient(port: port)
      for (request, end) in [(first, "GET /1"), (second, "GET /2"), (second, "GET /2")] {
        waiting.send(request)
        let answer = waiting.receive { $0.hasSuffix(end) }
        #expect(answer.hasPrefix("HTTP/1.1 200"), "\(answer)")
      }
    }
  }

  @Test("a body that trickles is given up after a time") func tricklingBody() async throws {
    var settings = HTTPServer.Settings()
    settings.body = .seconds(5)
    settings.wholeBody = .seconds(1)
    _ = try await serve(settings) { port, _ in
      let client = try RawClient(port: port)
      client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
      for _ in 0..<30 {
        client.send("a")
        try await Task.sleep(for: .milliseconds(100))
      }
      #expect(client.receive().hasPrefix("HTTP/1.1 408 "))
    }
  }

  @Test("a client that reads slowly gets its whole answer, and one that reads nothing is given up")
  func slowReaders() async throws {
    var settings = HTTPServer.Settings()
    settings.write = .seconds(4)
    _ = try await serve(settings) { port, _ in
      let request = "GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
      let (slow, still, chatty) = (try RawClient(port: port), try RawClient(port: port), try RawClient(port: port))
      for client in [slow, still, chatty] { client.send(request) }
      // One that reads nothing may not stay because it sends.
      let isRefused = Task { () -> Bool in
        for _ in 0..<150 {
          guard chatty.send([97]) else { return true }
          try await Task.sleep(for: .milliseconds(200))
        }
        return false
      }
      var total = 0
      // The whole answer takes twice the period, and each period has room for a machine that is busy for a while.
      while case let count = slow.read(atMost: 4 << 20), count > 0 {
        total += count
        try await Task.sleep(for: .seconds(1))
      }
      #expect(total > 32 << 20)
      // Three periods have passed then.
      try await Task.sleep(for: .seconds(4))
      #expect(still.read(atMost: 64 << 20) < 32 << 20)
      #expect(try await isRefused.value)
    }
  }

  @Test("a large body that is refused comes to its end, and its client gets the answer")
  func refusedBody() async throws {
    _ = try await serve { port, _ in
      let client = try RawClient(port: port)
      client.send("POST /closed HTTP/1.1\r\nHost: a\r\nContent-Length: \(8 << 20)\r\n\r\n")
      // The kernel keeps less than that.
      #expect(client.send([UInt8](repeating: 65, count: 8 << 20)))
      #expect(client.receive().hasPrefix("HTTP/1.1 401 "))
    }
  }

  @Test("requests that wait behind others take a bounded memory: where much waits, a connection ends after its answer")
  func ahead() async throws {
    var settings = HTTPServer.Settings()
    settings.ahead = 10_000
    _ = try await serve(settings) { port, _ in
      let slow = "GET /stubborn HTTP/1.1\r\nHost: a\r\n\r\n"
      let next = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n"
      let (few, many) = (try RawClient(port: port), try RawClient(port: port))
      few.send(slow + next + next)
      many.send(slow + String(repeating: next, count: 1000))
      let answer = many.receive()
      #expect(answer.hasPrefix("HTTP/1.1 204 ") && answer.contains("\r\nConnection: close\r\n"), "\(answer)")
      #expect(!answer.contains("HTTP/1.1 200"))
      #expect(few.receive { $0.hasSuffix("GET /1") && $0.contains("GET /1HTTP/1.1 200") }.hasPrefix("HTTP/1.1 204 "))
      // What ended counts no more.
      few.send(slow + next)
      #expect(few.receive { $0.hasSuffix("GET /1") }.hasPrefix("HTTP/1.1 204 "))
      // Nor does what a client has sent that has gone.
      try RawClient(port: port).send(slow + String(repeating: next, count: 340))
      try await eventually("there is room again", within: .seconds(10)) {
        let last = try RawClient(port: port)
        last.send(slow + String(repeating: next, count: 20))
        return last.receive { $0.hasSuffix("GET /1") }.contains("HTTP/1.1 200")
      }
    }
  }

  @Test("bodies that wait take a bounded memory: what is too much is told to come again") func bodies() async throws {
    var settings = HTTPServer.Settings()
    settings.bodies = 1200
    _ = try await serve(settings) { port, handler in
      let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n"
      let first = try RawClient(port: port)
      first.send(head + String(repeating: "a", count: 800))
      try await eventually("the first waits for its rest") { handler.admitted.withLock { $0 } == 1 }
      let second = try RawClient(port: port)
      second.send(head + String(repeating: "a", count: 800))
      let refused = second.receive()
      #expect(refused.hasPrefix("HTTP/1.1 503 ") && refused.contains("\r\nRetry-After: 1\r\n"), "\(refused)")
      first.send(String(repeating: "a", count: 200))
      #expect(first.receive { $0.hasSuffix("POST /") }.hasPrefix("HTTP/1.1 200"))
      do {
        let gone = try RawClient(port: port)
        gone.send(head + String(repeating: "a", count: 800))
        try await eventually("it waits for its rest") { handler.admitted.withLock { $0 } == 3 }
        withExtendedLifetime(gone) {}
      }
      var answer = ""
      try await eventually("what a client has sent that has gone counts no more", within: .seconds(10)) {
        let third = try RawClient(port: port)
        third.send(head + String(repeating: "a", count: 1000))
        answer = third.receive { $0.hasSuffix("POST /") }
        return !answer.hasPrefix("HTTP/1.1 503 ")
      }
      #expect(answer.hasPrefix("HTTP/1.1 200"))
    }
  }

  @Test("answers that nobody reads take a bounded memory: a large one is refused then, small ones and streams are not")
  func unreadAnswers() async throws {
    var settings = HTTPServer.Settings()
    settings.answers = 128 << 20
    _ = try await serve(settings) { port, _ in
      func ask(_ request: String, _ client: RawClient, until isEnough: (String) -> Bool) -> String {
        client.send("\(request) HTTP/1.1\r\nHost: a\r\n\r\n")
        return client.receive(until: isEnough)
      }
      func begin(_ request: String, _ client: RawClient) -> String {
        String(ask(request, client) { $0.utf8.count >= 12 }.prefix(12))
      }
      var still = try (0..<3).map { _ in try RawClient(port: port, receiveBuffer: 4096) }
      for client in still { #expect(begin("GET /large", client) == "HTTP/1.1 200") }
      let client = try RawClient(port: port)
      let refused = ask("GET /large", client) { $0.hasSuffix("}") }
      #expect(refused.hasPrefix("HTTP/1.1 503 ") && refused.contains("\r\nRetry-After: 1\r\n"), "\(refused)")
      #expect(ask("GET /", client) { $0.hasSuffix("GET /") }.hasPrefix("HTTP/1.1 200"))
      #expect(ask("GET /ticks", try RawClient(port: port)) { $0.hasSuffix("...") }.hasPrefix("HTTP/1.1 200"))
      #expect(ask("GET /state", try RawClient(port: port)) { _ in false }.hasSuffix("\r\n\r\nnone"))
      // What it has changed is told.
      #expect(begin("POST /large", try RawClient(port: port)) == "HTTP/1.1 200")
      still = []
      var answer = ""
      try await eventually("there is room again") {
        answer = begin("GET /large", try RawClient(port: port))
        return answer != "HTTP/1.1 503"
      }
      #expect(answer == "HTTP/1.1 200")
      #expect(ask("GET /state", try RawClient(port: port)) { $0.hasSuffix("A") }.contains("\r\n\r\nroomA"))
    }
  }
}
