import MemoryTaskStore
import TaskCore
import TaskStore
import TestKit
import Testing
import WorkerCore

/// What a canceled task left elsewhere is deleted by the handler of its kind.
@Suite struct CleanerTests {
  @Test("a clean-up is done once its handler has returned, and is kept where it failed", arguments: [false, true])
  func cleansUp(fails: Bool) async throws {
    let bench = try WorkerBench()
    if fails { bench.handler.refuseToCleanUp() }
    let spec = download()
    try await bench.run {
      bench.submit([spec])
      try await eventually("it runs") { bench.handler.ledger(spec.id) != nil }
      let checkpoint = Checkpoint(bytesDone: 10, payload: Array(#"{"upload":"7"}"#.utf8))
      try await bench.handler.ledger(spec.id)?.checkpoint(checkpoint)
      bench.control(.cancel, spec.id)
      try await eventually("the handler is asked to clean up") { !bench.handler.cleanups.isEmpty }
      try await eventually("the store is told") {
        !(bench.store.finishedCleanups + bench.store.postponedCleanups).isEmpty
      }
      #expect(bench.handler.cleanups.map(\.spec.id) == [spec.id])
      #expect(bench.handler.cleanups.first?.checkpoint == checkpoint)
      #expect(bench.store.finishedCleanups.isEmpty == fails)
      #expect(bench.store.postponedCleanups.isEmpty == !fails)
    }
  }

  /// Leaves one clean-up for each destination, in their order.
  private func leave(at destinations: [String], _ bench: WorkerBench) async throws {
    for destination in destinations {
      var spec = download()
      spec.destination = destination
      _ = try await bench.store.apply([
        .submit(spec), .control(.init(id: .random(), taskID: spec.id, action: .cancel)),
        .control(.init(id: .random(), taskID: spec.id, action: .remove(files: true))),
      ])
    }
  }

  @Test("a clean-up that fails waits for longer each time, up to an hour", arguments: [(1, 30), (70, 3600)])
  func waits(attempt: Int, seconds: Int) async throws {
    let bench = try WorkerBench()
    bench.handler.refuseToCleanUp()
    try await leave(at: ["storage://default/a"], bench)
    // Another worker has tried before.
    let store = bench.store.inner
    let other = try await store.register(
      WorkerRegistration(
        boot: .random(), host: "test", pid: 1, leaseSeconds: 3600, kinds: [.download],
        volumes: ["default": .random()]))
    for _ in 1..<attempt {
      let cleanup = try #require(try await store.claimCleanups(other, limit: 1, except: []).first)
      try await store.postponeCleanup(cleanup.id, after: .zero, error: "no")
    }
    try await bench.run {
      try await eventually("it has failed") { !bench.store.cleanupDelays.isEmpty }
      #expect(bench.handler.cleanups.map(\.attempt) == [attempt])
      #expect(bench.store.cleanupDelays == [.seconds(seconds)])
    }
  }

  @Test("more clean-ups than one claim takes are all done, each once") func many() async throws {
    let bench = try WorkerBench()
    try await leave(at: (0..<250).map { "storage://default/\($0)" }, bench)
    try await bench.run {
      try await eventually("all are done") { bench.store.finishedCleanups.count == 250 }
      #expect(Set(bench.store.finishedCleanups).count == 250 && bench.handler.cleanups.count == 250)
      #expect(bench.handler.cleanups.allSatisfy { $0.attempt == 1 })
    }
  }

  @Test("a worker never claims clean-ups twice at once, or a line would run twice") func slowClaims() async throws {
    let bench = try WorkerBench()
    // Longer than the time after which the worker looks again.
    bench.store.delayCleanupClaims(by: .milliseconds(3100))
    try await leave(at: (0..<250).map { "storage://default/\($0)" }, bench)
    try await bench.run {
      try await eventually("two claims are done") { bench.store.finishedCleanups.count >= 200 }
      #expect(bench.store.mostCleanupClaims == 1)
    }
  }

  @Test(
    "clean-ups at a server that does not answer, or only after long, hold up none at other servers",
    arguments: [Duration.seconds(600), .seconds(2)])
  func unanswered(patience: Duration) async throws {
    let bench = try WorkerBench { $0.cleanUpLimit = .seconds(5) }
    bench.handler.answerNoCleanUps(at: "dead.example", for: patience)
    let dead = (0..<9).map { "https://dead.example/\($0)" }
    try await leave(at: dead + ["https://live.example/1"], bench)
    try await bench.run {
      try await eventually("the other one is done") { bench.store.finishedCleanups.count == 1 }
      // One of nine was tried, and all wait. That the other one was given back counts as no attempt.
      #expect(bench.handler.cleanups.map(\.spec.destination) == [dead[0], "https://live.example/1"])
      #expect(bench.handler.cleanups.map(\.attempt) == [1, 1])
      #expect(Set(bench.store.postponedCleanups).count == 9)
    }
  }
}
