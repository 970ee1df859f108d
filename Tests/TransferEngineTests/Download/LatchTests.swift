import ReelhaulSystem
import Testing

@testable import TransferEngine

@Suite struct LatchTests {
  @Test("all waiting calls pass in order once the latch is open")
  func allPassInTurnOnceItIsOpen() {
    let latch = Latch()
    let passed = Lock<[Int]>([])
    func wait(_ number: Int) { latch.whenOpen { passed.withLock { $0.append(number) } } }
    wait(1)
    latch.close()
    wait(2)
    wait(3)
    #expect(passed.withLock { $0 } == [1])
    latch.open()
    #expect(passed.withLock { $0 } == [1, 2, 3])
    latch.open()
    #expect(passed.withLock { $0 } == [1, 2, 3])
  }

  /// A caller that comes while the latch opens waits for the next opening, and is not lost.
  @Test("calls that come while the latch opens and closes again wait for the next time")
  func itMayCloseAgainWhileTheyPass() {
    let latch = Latch(isClosed: true)
    let passed = Lock<[Int]>([])
    latch.whenOpen {
      latch.close()
      latch.whenOpen { passed.withLock { $0.append(2) } }
      passed.withLock { $0.append(1) }
    }
    latch.open()
    #expect(passed.withLock { $0 } == [1])
    #expect(latch.isClosed)
    latch.open()
    #expect(passed.withLock { $0 } == [1, 2])
  }

  /// The loop opens and closes the latch between any two turns of the waiting tasks. No task waits for ever.
  @Test("no waiting task misses an opening", .timeLimit(.minutes(10))) func nobodyMissesAnOpening() async throws {
    let loop = EventLoop(name: "latch")
    let latch = Latch(isClosed: true)
    let waiting = (0..<100).map { _ in loop.task { await latch.opened() } }
    loop.execute { latch.open() }
    for task in waiting { try await task.value }
    let more = loop.task { await latch.opened() }
    loop.execute {
      latch.close()
      latch.open()
    }
    try await more.value
  }
}
