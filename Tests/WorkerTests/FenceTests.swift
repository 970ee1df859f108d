import Testing
import Worker

@Suite struct FenceTests {
  @Test func opensUntilItsDeadlineAndMovesForwardOnly() {
    let fence = Fence(until: at(1000))
    #expect(fence.isOpen(at: at(999)))
    #expect(!fence.isOpen(at: at(1000)))
    fence.extend(until: at(2000))
    #expect(fence.isOpen(at: at(1999)))
    fence.extend(until: at(500))
    #expect(fence.isOpen(at: at(1999)))
  }

  @Test func staysClosed() {
    let fence = Fence(until: at(1000))
    fence.close()
    fence.extend(until: at(5000))
    #expect(!fence.isOpen(at: at(0)))
  }
}
