import Glibc
import ReelhaulCurl
import ReelhaulSystem
import TestKit
import Testing

@Suite struct CurlClientTests {
  /// An origin with `/file`, and a client that may reach it unless `permits` refuses.
  private func withClient(
    size: Int64 = 1 << 20, permits: @escaping CurlOptions.AddressPredicate = { _ in true }, idleConnections: Int = 64,
    _ body: (OriginServer, CurlClient) async throws -> Void
  ) async throws {
    let origin = try OriginServer()
    origin.serve("/file", OriginFile(seed: 7, size: size))
    let loop = EventLoop(name: "curl-test")
    let client = CurlClient(loop: loop, options: CurlOptions(permits: permits, idleConnections: idleConnections))
    let result = await Swift.Result.async { try await body(origin, client) }
    await client.close()
    loop.shutdown()
    origin.close()
    try result.get()
  }

  @Test("the head and the body of a response arrive")
  func bodyAndHeadArrive() async throws {
    try await withClient { origin, client in
      let handler = RecordingHandler()
      try await client.perform(
        CurlRequest(url: origin.url("/file")), handler: handler)
      #expect(handler.head?.status == 200)
      #expect(handler.head?["content-length"] == "1048576")
      #expect(handler.body == OriginContent(seed: 7).bytes(0..<1 << 20))
    }
  }

  @Test("headers are sent, and the connection is reused")
  func headersAreSentAndConnectionsReused() async throws {
    try await withClient { origin, client in
      for round in 0..<3 {
        let handler = RecordingHandler()
        let request = CurlRequest(
          url: origin.url("/file"), headers: [("Range", "bytes=10-19"), ("X-Empty", "")])
        let newConnections = try await client.perform(request, handler: handler)
        #expect(handler.body == OriginContent(seed: 7).bytes(10..<20))
        #expect(newConnections == (round == 0 ? 1 : 0))
      }
      #expect(origin.exchanges("/file").allSatisfy { $0.request["x-empty"] == "" })
    }
  }

  @Test("connections that are in use take nothing from those that are kept")
  func busyConnectionsAreNotIdle() async throws {
    try await withClient(idleConnections: 1) { origin, client in
      let gate = OriginGate()
      origin.script("/file") { $0.range == nil ? [.hold(after: 1000, gate)] : [] }
      let url = origin.url("/file")
      let busy = (0..<3).map { _ in Task { await failure(of: CurlRequest(url: url), client) } }
      try await eventually("three are in use") { origin.exchanges("/file").count == 3 }
      for round in 0..<3 {
        let request = CurlRequest(url: url, headers: [("Range", "bytes=10-19")])
        let newConnections = try await client.perform(request, handler: RecordingHandler())
        #expect(newConnections == (round == 0 ? 1 : 0))
      }
      for task in busy { task.cancel() }
      for task in busy { #expect(await task.value?.code == .canceled) }
      gate.open()
    }
  }

  @Test("a header line of a megabyte is refused as too large")
  func aHeaderLineOfAMegabyteIsTooLarge() async throws {
    try await withClient { origin, client in
      origin.always("/file", .header("X-Long", String(repeating: "q", count: 1_100_000)))
      #expect(await failure(of: CurlRequest(url: origin.url("/file")), client)?.code == .headTooLarge)
    }
  }

  @Test("many transfers run at once")
  func manyTransfersRunAtOnce() async throws {
    try await withClient(size: 100_000) { origin, client in
      let url = origin.url("/file")
      try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<50 {
          group.addTask {
            let handler = RecordingHandler()
            _ = try await client.perform(CurlRequest(url: url), handler: handler)
            return handler.body.count
          }
        }
        for try await count in group { #expect(count == 100_000) }
      }
    }
  }

  @Test("a GET after a HEAD gets its body")
  func aHeadRequestIsFollowedByAGet() async throws {
    try await withClient { origin, client in
      let first = RecordingHandler()
      _ = try await client.perform(CurlRequest(.head, url: origin.url("/file")), handler: first)
      #expect(first.body.isEmpty && first.head?.status == 200)
      let second = RecordingHandler()
      _ = try await client.perform(CurlRequest(url: origin.url("/file")), handler: second)
      #expect(second.body.count == 1 << 20)
    }
  }

  @Test("a refused address is a different error than a failed connection")
  func aRefusedAddressIsToldApartFromAFailedConnect() async throws {
    let nowhere: CurlOptions.AddressPredicate = { _ in false }
    try await withClient(permits: nowhere) { origin, client in
      let error = await failure(of: CurlRequest(url: origin.url("/file")), client)
      #expect(error?.code == .addressRefused)
      #expect(error?.isRetryable == false)
      #expect(origin.exchanges("/file").isEmpty)
    }
    try await withClient { origin, client in
      let port = origin.port
      origin.close()
      let error = await failure(of: CurlRequest(url: "http://127.0.0.1:\(port)/"), client)
      #expect(error?.code == .connectFailed)
      #expect(error?.isRetryable == true)
    }
  }

  @Test("the policy judges the resolved address")
  func theAddressHandedToThePolicyIsTheResolvedOne() async throws {
    let seen = Lock([UInt8]())
    let permits: CurlOptions.AddressPredicate = { address in
      seen.withLock { $0 = Array(address) }
      return false
    }
    try await withClient(permits: permits) { origin, client in
      _ = await failure(of: CurlRequest(url: origin.url("/file")), client)
      // sockaddr_in: family, port and address in network order.
      let bytes = seen.withLock { $0 }
      #expect(bytes.count >= 8 && Array(bytes[4..<8]) == [127, 0, 0, 1])
      #expect(bytes.count >= 8 && UInt16(bytes[2]) << 8 | UInt16(bytes[3]) == origin.port)
    }
  }

  @Test("a handler can end a transfer at the head or in the body")
  func aHandlerCanRefuseAHeadAndABody() async throws {
    try await withClient { origin, client in
      let url = origin.url("/file")
      for refusesHead in [true, false] {
        let handler = RecordingHandler { event, _ in
          if case .head = event { return refusesHead ? .abort : .continue }
          return .abort
        }
        let error = await failure(of: CurlRequest(url: url), client, handler)
        #expect(error?.code == .aborted)
        #expect(handler.body.isEmpty)
      }
    }
  }

  @Test("a paused body is delivered again after resume, without loss")
  func aPausedBodyIsGivenAgainAfterResume() async throws {
    try await withClient { origin, client in
      let pauses = Lock(0)
      let loop = client.loop
      let handler = RecordingHandler { event, transfer in
        guard case .body = event else { return .continue }
        let pausesNow = pauses.withLock { count in
          count += 1
          return count % 2 == 1 && count < 20
        }
        guard pausesNow else { return .continue }
        loop.timer(after: .milliseconds(1)) { transfer.resume() }
        return .pause
      }
      _ = try await client.perform(CurlRequest(url: origin.url("/file")), handler: handler)
      #expect(handler.body == OriginContent(seed: 7).bytes(0..<1 << 20))
      #expect(pauses.withLock { $0 } > 20)
    }
  }

  @Test("a handler that refuses the bytes after a pause ends the transfer")
  func refusingThePausedBytesEndsTheTransfer() async throws {
    try await withClient(size: 10_000) { origin, client in
      let pauses = Lock(0)
      let loop = client.loop
      let handler = RecordingHandler { event, transfer in
        guard case .body = event else { return .continue }
        let isFirst = pauses.withLock { count in
          count += 1
          return count == 1
        }
        guard isFirst else { return .abort }
        loop.timer(after: .milliseconds(20)) { transfer.resume() }
        return .pause
      }
      #expect(await failure(of: CurlRequest(url: origin.url("/file")), client, handler)?.code == .aborted)
    }
  }

  @Test("canceling the task ends its transfer")
  func cancelingTheTaskEndsTheTransfer() async throws {
    try await withClient { origin, client in
      let gate = OriginGate()
      origin.always("/file", .hold(after: 1000, gate))
      let url = origin.url("/file")
      let task = Task { await failure(of: CurlRequest(url: url), client) }
      await gate.reached()
      task.cancel()
      #expect(await task.value?.code == .canceled)
      let late = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return await failure(of: CurlRequest(url: url), client)
      }
      #expect(await late.value?.code == .canceled)
    }
  }

  @Test("closing the client ends its transfers and refuses later ones")
  func closingTheClientEndsItsTransfers() async throws {
    try await withClient { origin, client in
      let gate = OriginGate()
      origin.always("/file", .hold(after: nil, gate))
      let url = origin.url("/file")
      let task = Task { await failure(of: CurlRequest(url: url), client) }
      await gate.reached()
      await client.close()
      #expect(await task.value?.code == .canceled)
      #expect(await failure(of: CurlRequest(url: url), client)?.code == .canceled)
    }
  }

  @Test("a name without an address may have one later") func noAddress() async throws {
    try await withClient { _, client in
      let error = await failure(of: CurlRequest(url: "http://\(TestNames.name { _ in [] })/file"), client)
      #expect(error?.code == .resolveFailed && error?.isRetryable == true, "\(String(describing: error))")
    }
  }

  @Test("a canceled request does not hold up the others until its name is found") func slowName() async throws {
    let (isAsked, isOver) = (Lock(false), Lock(false))
    defer { isOver.withLock { $0 = true } }
    let name = TestNames.name { _ in
      isAsked.withLock { $0 = true }
      let end = BootInstant.now + .seconds(5)
      while !isOver.withLock({ $0 }), !end.hasPassed { usleep(10_000) }
      return []
    }
    try await withClient { _, client in
      let task = Task { await failure(of: CurlRequest(url: "http://\(name)/file"), client) }
      try await eventually("the name is looked up") { isAsked.withLock { $0 } }
      let begin = ContinuousClock.now
      task.cancel()
      #expect(await task.value?.code == .canceled)
      try await client.loop.task {}.value
      #expect(ContinuousClock.now - begin < .seconds(2))
    }
  }

  @Test("lost connections and large heads have their own codes")
  func failuresAreClassified() async throws {
    try await withClient { origin, client in
      origin.always("/file", .cut(after: 1000))
      let cut = await failure(of: CurlRequest(url: origin.url("/file")), client)
      #expect(cut?.code == .cut && cut?.isRetryable == true)
      origin.always("/file", .cut(after: nil))
      let empty = await failure(of: CurlRequest(url: origin.url("/file")), client)
      #expect(empty?.code == .noResponse && empty?.isRetryable == true)
      origin.always("/file", .cut(after: 1000, reset: true))
      let reset = await failure(of: CurlRequest(url: origin.url("/file")), client)
      #expect(reset?.isRetryable == true)
      origin.always("/file", .headerFlood(1000))
      #expect(
        await failure(of: CurlRequest(url: origin.url("/file")), client)?.code == .headTooLarge)
    }
  }

  @Test("a deadline ends a stalled transfer")
  func aDeadlineEndsAStalledTransfer() async throws {
    try await withClient { origin, client in
      origin.always("/file", .hold(after: 1000, OriginGate()))
      let request = CurlRequest(url: origin.url("/file"), deadline: .milliseconds(200))
      let error = await failure(of: request, client)
      #expect(error?.code == .timedOut && error?.isRetryable == true)
    }
  }

  @Test("a connection that nobody accepts in time cannot be made, as if it were refused")
  func aConnectionThatNobodyAccepts() async throws {
    // Two connections fill its line: what comes then gets no answer, as from a machine that is off.
    let listener = try FullListener()
    defer { listener.close() }
    try await withClient { _, client in
      let request = CurlRequest(url: "http://127.0.0.1:\(listener.port)/", deadline: .milliseconds(300))
      let error = await failure(of: request, client)
      #expect(error?.code == .connectFailed && error?.isRetryable == true)
    }
  }

  @Test(
    "a URL with another scheme or with a password is not requested",
    arguments: [
      "file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "http://a:b@127.0.0.1/",
      "http://",
    ])
  func otherSchemesAndCredentialsAreRefused(url: String) async throws {
    try await withClient { _, client in
      let error = await failure(of: CurlRequest(url: url), client)
      #expect(error?.code == .badRequest)
      #expect(error?.isRetryable == false)
    }
  }

  @Test("a request that may not begin is not sent, on a new connection and on a kept one")
  func mayNotBegin() async throws {
    try await withClient { origin, client in
      for sent in 0...1 {
        var request = CurlRequest(.delete, url: origin.url("/file"))
        request.mayBegin = { false }
        #expect(await failure(of: request, client)?.code == .aborted)
        #expect(origin.exchanges("/file").count == sent)
        request.mayBegin = { true }
        request.method = .get
        #expect(await failure(of: request, client) == nil)
      }
    }
  }

  @Test("a header value with a line break is refused")
  func headersCannotBeInjected() async throws {
    try await withClient { origin, client in
      let request = CurlRequest(url: origin.url("/file"), headers: [("X", "a\r\nY: b")])
      #expect(await failure(of: request, client)?.code == .badRequest)
    }
  }
}

/// The error of a request; nil if it succeeds.
private func failure(
  of request: CurlRequest, _ client: CurlClient, _ handler: RecordingHandler = RecordingHandler()
) async -> CurlError? {
  do throws(CurlError) {
    _ = try await client.perform(request, handler: handler)
    return nil
  } catch {
    return error
  }
}

extension Result where Failure == any Error {
  fileprivate static func async(_ body: () async throws -> Success) async -> Self {
    do { return .success(try await body()) } catch { return .failure(error) }
  }
}

/// Listens, and accepts nothing.
private final class FullListener {
  private var sockets: [Int32] = []
  let port: UInt16

  init() throws {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let bytes = length
    port = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        _ = bind(listener, address, bytes)
        _ = listen(listener, 0)
        _ = getsockname(listener, address, &length)
      }
      return UInt16(bigEndian: pointer.pointee.sin_port)
    }
    sockets = [listener]
    for _ in 0..<3 {
      let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
      withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = connect(client, $0, bytes) }
      }
      sockets.append(client)
    }
  }

  func close() {
    for socket in sockets { Glibc.close(socket) }
  }
}
