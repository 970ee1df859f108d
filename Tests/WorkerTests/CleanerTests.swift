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
}
