import Glibc
import LocalFleet
import ReelhaulClient
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// Every command comes twice, while every 500 ms members join the group and die without leaving it.
@Suite(.serialized, .enabled(if: TestKafka.isAvailable)) struct RebalanceStormTests {
  @Test("during a storm of rebalances every command takes effect once")
  func eachCommandTakesEffectOnce() async throws {
    let kafka = try await TestKafka.shared()
    let fleet = try await TestFleet.start(workers: 2, broker: .running(kafka.bootstrap), leaseSeconds: 3)
    let specs = (0..<(LongTests.areWanted ? 50_000 : 5000)).map { _ in
      TaskSpec(id: .make(), kind: .noop, source: "noop://host/")
    }
    let batches = stride(from: 0, to: specs.count, by: 500).map { Array(specs[$0..<min($0 + 500, specs.count)]) }
    async let commands: Void = {
      for batch in batches {
        try await fleet.client.submit(batch)
        try await fleet.client.submit(batch.reversed())
      }
    }()
    var kills = 0
    while kills < (LongTests.areWanted ? 60 : 10) {
      let joined = try fleet.startWorker()
      try await fleet.loop.sleep(for: .milliseconds(500))
      guard let victim = fleet.running.filter({ $0 !== joined }).randomElement() else { continue }
      victim.kill(SIGKILL)
      kills += 1
    }
    try await commands
    try await fleet.eventually("all are done, after \(kills) kills") {
      try await fleet.store.counts() == [.succeeded: specs.count]
    }
    #expect(try await fleet.problemsOfEvents() == [])
    #expect(try await fleet.store.audit() == [])
    await fleet.stop()
  }
}
