import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import ReelhaulCurl
@testable import TransferEngine

@Suite struct ThrottleTests {
  @Test(
    "a transfer that its task's own slow limit held back gets half a second at once, so that it is seldom resumed")
  func portions() async throws {
    let storage = try StorageFixture()
    let loop = EventLoop(name: "throttle-test")
    let context = DownloadContext(loop: loop, storage: storage, permits: false)
    let passed = try await loop.task {
      let transfer = CurlTransfer(
        request: CurlRequest(url: "http://a/film.mp4"), handler: Sink(), client: context.root.client)
      let began = Clocks.boottime()
      let throttle = Throttle(rate: 100 << 10, limiter: nil, loop: loop)
      var passed = [0, 0]
      while !throttle.holdsBack(1 << 10, of: transfer) { passed[0] += 1 }
      // One more may pass every 10 ms.
      let most = 51 + Int((Clocks.boottime() - began) / 10_000_000)
      #expect((51...most).contains(passed[0]))
      while throttle.holdsBack(1 << 10, of: transfer) { try await loop.sleep(for: .milliseconds(5)) }
      repeat { passed[1] += 1 } while !throttle.holdsBack(1 << 10, of: transfer)
      throttle.close()
      return passed
    }.value
    #expect(passed[1] >= 49)
    await context.close()
    loop.shutdown()
  }

  @Test("a run that is over keeps no transfer that a limit held back", arguments: [false, true])
  func release(isCommon: Bool) async throws {
    let storage = try StorageFixture()
    let loop = EventLoop(name: "throttle-test")
    let context = DownloadContext(loop: loop, storage: storage, permits: false)
    let isReleased = try await loop.task {
      let limiter = isCommon ? RateLimiter(rate: 100 << 10, loop: loop) : nil
      let throttle = Throttle(rate: isCommon ? nil : 100 << 10, limiter: limiter, loop: loop)
      func held() -> Weak {
        let transfer = CurlTransfer(
          request: CurlRequest(url: "http://a/film.mp4"), handler: Sink(), client: context.root.client)
        while !throttle.holdsBack(16 << 10, of: transfer) {}
        throttle.close()
        #expect(!throttle.holdsBack(16 << 10, of: transfer), "nobody would resume it")
        return Weak(transfer: transfer)
      }
      return held().transfer == nil
    }.value
    #expect(isReleased)
    await context.close()
    loop.shutdown()
  }

  @Test("a transfer's share of the common limit follows how many there are")
  func shares() {
    let loop = EventLoop(name: "throttle-test")
    let limiter = RateLimiter(rate: 1000, loop: loop)
    let transfers = (0..<4).map { _ in limiter.enter() }
    #expect(limiter.share == 250)
    for transfer in transfers.dropFirst() { limiter.leave(transfer, returning: 0) }
    #expect(limiter.share == 1000)
    loop.shutdown()
  }

  @Test("a common limit whose next portion is hours away does not keep its loop from ending")
  func end() async throws {
    let loop = EventLoop(name: "throttle-test")
    let limiter = RateLimiter(rate: 1, loop: loop)
    let transfer = limiter.enter()
    #expect(limiter.take(transfer) {})
    #expect(!limiter.take(transfer) {})
    // What was enqueued before has run: the timer is set.
    try await loop.task {}.value
    limiter.leave(transfer, returning: 0)
    let hasEnded = Lock(false)
    Thread(name: "shutdown") {
      loop.shutdown()
      hasEnded.withLock { $0 = true }
    }.detach()
    try await eventually("the loop ends") { hasEnded.withLock { $0 } }
  }
}

private struct Weak {
  weak var transfer: CurlTransfer?
}

private final class Sink: CurlHandler {
  func receive(head: CurlHead, of transfer: CurlTransfer) -> CurlVerdict { .continue }
  func receive(body: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> CurlVerdict { .continue }
}
