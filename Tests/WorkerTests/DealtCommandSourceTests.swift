import TaskStore
import Testing

@testable import WorkerCore

@Suite struct DealtCommandSourceTests {
  @Test("workers that see the same leases read every partition once, and alike many", arguments: [1, 2, 3, 7, 48, 50])
  func everyPartitionHasOneReader(count: Int) {
    let workers = (0..<count).map { WorkerID(rawValue: Int32(3 + 5 * $0)) }
    let shares = workers.map { DealtCommandSource.share(of: $0, among: workers.shuffled(), partitions: 48) }
    #expect(shares.joined().sorted() == Array(0..<48))
    #expect((shares.map(\.count).max() ?? 0) - (shares.map(\.count).min() ?? 0) <= 1)
  }

  @Test("a worker whose own renewal is late goes on reading")
  func aLateWorkerGoesOn() {
    let (own, other) = (WorkerID(rawValue: 1), WorkerID(rawValue: 2))
    #expect(DealtCommandSource.share(of: own, among: [other], partitions: 4) == [0, 2])
    #expect(DealtCommandSource.share(of: own, among: [], partitions: 4) == [0, 1, 2, 3])
  }
}
