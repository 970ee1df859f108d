import ReelhaulSystem
import TaskCore
import Testing

/// The number of connections after `samples` samples, if `throughput` gives the rate of a number of connections.
private func settled(maximum: Int, samples: Int = 60, throughput: (Int) -> Int64) -> Int {
  var governor = ConnectionGovernor(maximum: maximum)
  for _ in 0..<samples { governor.observe(throughput: throughput(governor.connections)) }
  return governor.connections
}

struct ConnectionGovernorTests {
  @Test("the number of connections grows while throughput grows")
  func growsWhileThroughputDoes() {
    #expect(settled(maximum: 16) { Int64($0) * 1000 } == 16)
  }

  @Test("the number of connections stays near the number that saturates the source")
  func staysNearTheNumberThatSaturates() {
    let connections = settled(maximum: 32) { Int64(min($0, 4)) * 1000 }
    #expect((4...5).contains(connections))
  }

  @Test("more connections are not kept if they bring no more throughput")
  func oneConnectionIsEnoughForAFastServer() {
    #expect(settled(maximum: 16, samples: 40) { _ in 1_000_000 } <= 2)
  }

  @Test("the number of connections never again reaches a number that was refused")
  func neverAgainAsManyAsWereRefused() {
    var governor = ConnectionGovernor(maximum: 16)
    while governor.connections < 8 { governor.observe(throughput: Int64(governor.connections) * 1000) }
    governor.refused()
    #expect(governor.connections == 7)
    for _ in 0..<100 {
      governor.observe(throughput: Int64(governor.connections) * 1000)
      #expect(governor.connections <= 7)
    }
    for _ in 0..<20 { governor.refused() }
    #expect(governor.connections == 1)
  }

  @Test("the number of connections stays within its bounds", arguments: 0..<20 as Range<UInt64>)
  func staysWithinItsBounds(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    let maximum = Int.random(in: 1...16, using: &generator)
    var governor = ConnectionGovernor(maximum: maximum, start: 4)
    for _ in 0..<300 {
      if Int.random(in: 0..<20, using: &generator) == 0 {
        governor.refused()
      } else {
        governor.observe(throughput: Int64.random(in: 0...Int64.max, using: &generator))
      }
      #expect((1...maximum).contains(governor.connections))
    }
  }
}
