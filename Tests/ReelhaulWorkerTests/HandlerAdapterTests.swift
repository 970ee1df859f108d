import MemoryTaskStore
import ReelhaulSystem
import ReelhaulTelemetry
import ReelhaulTestKit
import TaskCore
import TaskStore
import TestKit
import Testing
import WorkerCore

@testable import ReelhaulWorker

@Suite struct HandlerAdapterTests {
  /// A later version of the worker, or of the handler, may have written it.
  @Test(
    "a task whose checkpoint this worker cannot read waits, and its handler is not run",
    arguments: [(2, #"{"checkpoint":{"step":2}}"#), (1, #"{"checkpoint":{"steps":[1,2]}}"#), (1, "[]")])
  func newerCheckpoint(version: Int, payload: String) async throws {
    let wasRun = Lock(false)
    let handler = Scripted { _ -> Int in
      wasRun.withLock { $0 = true }
      return 1
    }
    let outcome = try await run(handler, from: Checkpoint(version: version, payload: Array(payload.utf8)))
    guard case .failed(let failure) = outcome else {
      Issue.record("\(outcome)")
      return
    }
    #expect(failure.code == .checkpointUnreadable && failure.class == .wait)
    #expect(!wasRun.withLock { $0 })
  }

  private func run(_ handler: Scripted<Int>, from checkpoint: Checkpoint) async throws -> RunOutcome {
    let loop = EventLoop(name: "adapter-test")
    let log = Logger(level: .error)
    let claim = Claim(
      spec: try TaskSpec(Scripted<Int>.self, .init()), epoch: 2, attempt: 1, checkpoint: checkpoint)
    let ledger = RunLedger(
      claim: claim,
      lease: Lease(worker: WorkerID(rawValue: 1), boot: .random(), fence: Fence(until: .now + .seconds(3600))),
      store: StoreBatcher(store: MemoryStore(), loop: loop, log: log))
    let outcome = await HandlerAdapter(handler, roots: nil, log: log).run(claim, ledger: ledger)
    await Task.detached { loop.shutdown() }.value
    return outcome
  }
}
