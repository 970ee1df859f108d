import CReelhaulCurl
import Glibc
import ReelhaulSystem
import TestKit
import Testing

@testable import ReelhaulCurl

/// Bytes that a server sends after a response are not the answer to the next request on the connection.
@Suite struct SurplusTests {
  private struct Server {
    let origin: OriginServer
    let relay: TLSRelay?
    let client: CurlClient

    var port: UInt16 { relay?.port ?? origin.port }

    /// Performs a request. Returns the body, and the number of connections that were opened for it.
    func get(_ path: String, headers: [(String, String)] = []) async throws -> (body: [UInt8], connections: Int) {
      let handler = RecordingHandler()
      let url = relay?.url(path) ?? origin.url(path)
      let newConnections = try await client.perform(CurlRequest(url: url, headers: headers), handler: handler)
      return (handler.body, newConnections)
    }
  }

  private static let size: Int64 = 1 << 20
  private static let surplus = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"

  /// An origin with `/file` and `/next`, without TLS or over TLS.
  private func run(overTLS: Bool, receiveBuffer: Int32? = nil, _ body: (Server) async throws -> Void) async throws {
    let origin = try OriginServer(receiveBuffer: receiveBuffer)
    defer { origin.close() }
    origin.serve("/file", OriginFile(seed: 7, size: Self.size))
    origin.serve("/next", OriginFile(seed: 8, size: 5000))
    let relay = overTLS ? try TLSRelay(to: origin.port) : nil
    defer { relay?.close() }
    let authority = try overTLS ? TestCertificates.shared.get().authority : nil
    let loop = EventLoop(name: "curl-test")
    defer { loop.shutdown() }
    let client = CurlClient(loop: loop, options: CurlOptions(permits: { _ in true }, caFile: authority))
    do {
      try await body(Server(origin: origin, relay: relay, client: client))
    } catch {
      await client.close()
      throw error
    }
    await client.close()
  }

  private func isFile(_ answer: (body: [UInt8], connections: Int)) -> Bool {
    answer.body == OriginContent(seed: 7).bytes(0..<Self.size)
  }

  /// Whether this is the answer of `/next`, over a new connection.
  private func isNext(_ answer: (body: [UInt8], connections: Int)) -> Bool {
    answer.body == OriginContent(seed: 8).bytes(0..<5000) && answer.connections == 1
  }

  /// In both cases: the bytes come with the response, or later while the connection rests.
  @Test("a connection that receives bytes without a request is closed", arguments: [false, true], [false, true])
  func aConnectionThatIsNotSilentIsGivenUp(overTLS: Bool, late: Bool) async throws {
    try await run(overTLS: overTLS) { server in
      let gate = OriginGate()
      let surplus = OriginFault.surplus(Self.surplus)
      server.origin.script("/file") { _ in late ? [surplus, .hold(after: Self.size, gate)] : [surplus] }
      try await #expect(isFile(server.get("/file")))
      gate.open()
      try await eventually("the connection is given up") { server.origin.connections == 0 }
      try await #expect(isNext(server.get("/next")))
    }
  }

  /// The bytes are there when the next request is sent, but the loop has not had time to see them.
  @Test("unexpected bytes are found right before the next request is sent", arguments: [false, true])
  func aConnectionIsLookedAtBeforeARequest(overTLS: Bool) async throws {
    try await run(overTLS: overTLS) { server in
      let gate = OriginGate()
      server.origin.always("/file", .surplus(Self.surplus), .hold(after: Self.size, gate))
      try await #expect(isFile(server.get("/file")))
      let next = try await server.client.loop.task {
        gate.open()
        #expect(LoopbackPort.receives(from: server.port))
        return try await server.get("/next")
      }.value
      #expect(isNext(next))
    }
  }

  /// The bytes come after the next request is sent and before the server has it, because the server's buffer is too
  /// small for the whole request.
  @Test("bytes that come before the server has the request are not taken for its answer")
  func bytesBeforeTheRequestArrivedAreNoAnswer() async throws {
    try await run(overTLS: false, receiveBuffer: 4096) { server in
      let (gate, never) = (OriginGate(), OriginGate())
      server.origin.always(
        "/file", .surplus(Self.surplus + "\n"), .hold(after: Self.size + Int64(Self.surplus.utf8.count), never),
        .hold(after: Self.size, gate))
      try await #expect(isFile(server.get("/file")))
      let next = try await server.client.loop.task {
        // After the request is sent, because timers wait for enqueued work.
        server.client.loop.timer(after: .zero) { gate.open() }
        return try await server.get("/next", headers: [("X-Long", String(repeating: "x", count: 32_000))])
      }.value
      #expect(isNext(next))
      #expect(server.origin.exchanges("/next").count == 1)
    }
  }

  /// A request that is answered and then paused, all in one step of libcurl, changes nothing in what libcurl watches.
  @Test("the beginning of an answer is not taken for unexpected bytes", arguments: [false, true])
  func anAnswerIsNoSurplus(isAnswer: Bool) async throws {
    try await run(overTLS: false) { server in
      let loop = server.client.loop
      let received = try await loop.task {
        let table = SocketTable(loop: loop) { _, _ in }
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { table.close(descriptor) }
        try #require(LoopbackPort.connect(descriptor, to: server.port))
        table.own(descriptor)
        for what in [CURL_POLL_IN, CURL_POLL_REMOVE] { #expect(table.watch(descriptor, what: what)) }
        table.rest(descriptor, hasSurplus: false)
        if isAnswer { table.use(try #require(SocketRoute(descriptor))) }
        let request = "GET /next HTTP/1.1\r\nHost: a\r\n\r\n"
        #expect(send(descriptor, request, request.utf8.count, 0) == request.utf8.count)
        #expect(LoopbackPort.receives(from: server.port))
        for _ in 0..<3 { try await loop.sleep(for: .milliseconds(10)) }
        var bytes = [UInt8](repeating: 0, count: 100)
        return recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
      }.value
      #expect(received == (isAnswer ? 100 : 0))
    }
  }

  @Test("connections without unexpected bytes are reused", arguments: [false, true]) func silentConnectionsAreKept(
    overTLS: Bool
  ) async throws {
    try await run(overTLS: overTLS) { server in
      let opened = try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<8 {
          group.addTask {
            var opened = 0
            for _ in 0..<25 { opened += try await server.get("/next").connections }
            return opened
          }
        }
        return try await group.reduce(0, +)
      }
      #expect(opened <= 8)
    }
  }
}
