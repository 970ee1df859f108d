import Testing
import WorkerCore

@Suite struct FenceTests {
  @Test("a fence is open until its deadline, which only moves forward")
  func opensUntilItsDeadlineAndMovesForwardOnly() {
    let fence = Fence(until: at(1000))
    #expect(fence.isOpen(at: at(999)))
    #expect(!fence.isOpen(at: at(1000)))
    #expect(fence.extend(until: at(2000), now: { at(999) }))
    #expect(fence.isOpen(at: at(1999)))
    #expect(fence.extend(until: at(500), now: { at(1500) }))
    #expect(fence.isOpen(at: at(1999)))
  }

  @Test("a closed fence cannot be extended")
  func staysClosed() {
    let fence = Fence(until: at(1000))
    fence.close()
    #expect(!fence.extend(until: at(5000), now: { at(0) }))
    #expect(!fence.isOpen(at: at(0)))
  }

  /// A thread may have seen the fence closed, and given up a write for good.
  @Test("a fence that has reached its deadline cannot be extended")
  func onceReachedItStaysClosed() {
    let fence = Fence(until: at(1000))
    #expect(!fence.extend(until: at(5000), now: { at(1000) }))
    #expect(!fence.isOpen(at: at(0)))
  }
}
