import ReelhaulCurl
import ReelhaulSystem
import TestKit
import Testing

/// The limit for transfers that are too slow.
@Suite struct LowSpeedTests {
  /// Supplies one byte, and the next one after a pause; without one, never.
  // @unchecked: touched only on the client's loop.
  private final class SlowBody: CurlBody, @unchecked Sendable {
    let size: Int64
    private let pause: Duration?
    private let loop: EventLoop
    private var sent: Int64 = 0
    private var mayRead = true

    init(size: Int64, pause: Duration?, loop: EventLoop) {
      (self.size, self.pause, self.loop) = (size, pause, loop)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, of transfer: CurlTransfer) -> CurlSupply {
      guard mayRead else {
        if let pause {
          loop.timer(after: pause) { [self] in
            mayRead = true
            transfer.resume()
          }
        }
        return .pause
      }
      mayRead = false
      sent += 1
      buffer[0] = 65
      return .bytes(1)
    }

    func rewind() -> Bool { sent == 0 }
  }

  private func put(
    _ store: StoreServer, seconds: Int = 1, answerSeconds: Int? = nil, handler: RecordingHandler = RecordingHandler(),
    _ body: @escaping (EventLoop) -> any CurlBody
  ) async -> Swift.Result<CurlHead?, CurlError> {
    let loop = EventLoop(name: "curl-test")
    defer { loop.shutdown() }
    let client = CurlClient(loop: loop, options: CurlOptions(permits: { _ in true }))
    var request = CurlRequest(
      .put, url: store.url("/put/a"),
      lowSpeed: .init(bytesPerSecond: 512, seconds: seconds, answerSeconds: answerSeconds))
    request.body = body(loop)
    let result: Swift.Result<CurlHead?, CurlError>
    do throws(CurlError) {
      _ = try await client.perform(request, handler: handler)
      result = .success(handler.head)
    } catch {
      result = .failure(error)
    }
    await client.close()
    return result
  }

  @Test("a body that is supplied slowly is sent to its end") func slowBody() async throws {
    let store = try StoreServer()
    defer { store.close() }
    let result = await put(store, seconds: 3) { SlowBody(size: 3, pause: .seconds(5), loop: $0) }
    #expect(try result.get()?.status == 201)
    #expect(store.objects["put/a"]?.bytes == [65, 65, 65])
  }

  @Test(
    "a refusal ends a request whose body pauses, and is received whole", .timeLimit(.minutes(1)),
    arguments: ["keep-alive", "close"])
  func refused(connection: String) async throws {
    let store = try StoreServer()
    defer { store.close() }
    let refusal = StoreFault.status(403, headers: [("Connection", connection)], body: "for a reason")
    store.always(.put, refusal, .refuseAfter(bytes: 1))
    let handler = RecordingHandler()
    let result = await put(store, handler: handler) { SlowBody(size: 3, pause: nil, loop: $0) }
    #expect(try result.get()?.status == 403)
    #expect(handler.body == Array("for a reason".utf8))
  }

  @Test(
    "a connection that the server ends without an answer ends a request whose body pauses", .timeLimit(.minutes(1)))
  func ended() async throws {
    let store = try StoreServer()
    defer { store.close() }
    store.always(.put, .closeAfter(bytes: 1))
    let result = await put(store) { SlowBody(size: 3, pause: nil, loop: $0) }
    guard case .failure(let error) = result else {
      Issue.record("\(result)")
      return
    }
    #expect(error.code == .noResponse && error.isRetryable)
  }

  @Test("a server that has the whole body may take longer to answer") func longWork() async throws {
    let store = try StoreServer()
    defer { store.close() }
    store.always(.put, .delay(4000))
    let result = await put(store, seconds: 1, answerSeconds: 60) { _ in CurlBytes([1, 2, 3]) }
    #expect(try result.get()?.status == 201)
  }

  @Test("a server that does not answer is given up, also after a slow body") func noAnswer() async throws {
    let store = try StoreServer()
    defer { store.close() }
    let gate = OriginGate()
    defer { gate.open() }
    store.always(.put, .holdAnswer(gate))
    let result = await put(store) { SlowBody(size: 2, pause: .seconds(3), loop: $0) }
    #expect(throws: CurlError.self) { try result.get() }
    guard case .failure(let error) = result else { return }
    #expect(error.code == .timedOut)
    #expect(store.bytesReceived == 2)
  }
}
