import MemoryTaskStore
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

@testable import WorkerCore

/// A run checks whether it still owns its task, and obeys the answer.
@Suite struct OwnershipTests {
  private func ledger(
    _ store: any TaskStore, _ fence: Fence, loop: EventLoop, claim: Claim? = nil, worker: WorkerID? = nil
  ) -> RunLedger {
    RunLedger(
      claim: claim ?? Claim(spec: download(), epoch: 1, attempt: 1, checkpoint: nil),
      lease: Lease(worker: worker ?? WorkerID(rawValue: 1), boot: .random(), fence: fence),
      store: StoreBatcher(store: store, loop: loop, log: quietLog))
  }

  @Test("a run whose checkpoint the store refuses has lost its task, and writes nothing more")
  func refusedCheckpoint() async throws {
    let loop = EventLoop(name: "ownership-test")
    // The store does not have the task with this owner: it has another owner, or is gone.
    let ledger = ledger(TestStore(), Fence(until: .now + .seconds(3600)), loop: loop)
    #expect(ledger.mayWrite)
    await #expect(throws: OwnershipLost.self) { try await ledger.checkpoint(Checkpoint.sample) }
    #expect(!ledger.mayWrite)
    await Task.detached { loop.shutdown() }.value
  }

  /// Its task is about to be handed back, and is still this worker's in the store.
  @Test("a run that is detached records nothing, though the store would take it")
  func detached() async throws {
    let loop = EventLoop(name: "ownership-test")
    let store = MemoryStore()
    let spec = noop()
    _ = try await store.apply([.submit(spec)])
    let worker = try await store.register(
      WorkerRegistration(boot: .random(), host: "test", pid: 1, leaseSeconds: 3600, kinds: [.noop], volumes: [:]))
    let claim = try #require(try await store.claim(worker, limit: 1, call: 1).first)
    let ledger = ledger(store, Fence(until: .now + .seconds(3600)), loop: loop, claim: claim, worker: worker)
    try await ledger.checkpoint(Checkpoint.sample)
    ledger.disown()
    await #expect(throws: OwnershipLost.self) { try await ledger.checkpoint(Checkpoint(bytesDone: 20)) }
    let end = Settlement(taskID: spec.id, epoch: claim.epoch, outcome: .released(reason: nil, delay: .zero))
    #expect(try await store.settle([end]) == [true])
    let next = try await store.claim(worker, limit: 1, call: 2).first
    #expect(next?.checkpoint == Checkpoint.sample)
    await Task.detached { loop.shutdown() }.value
  }

  @Test("a payload with a NUL, which the store could not read again, is refused, and costs the run nothing")
  func unreadablePayload() async throws {
    let loop = EventLoop(name: "ownership-test")
    let ledger = ledger(TestStore(), Fence(until: .now + .seconds(3600)), loop: loop)
    let checkpoint = Checkpoint(payload: Array(#"{"session": "a\u0000b"}"#.utf8))
    await #expect(throws: CheckpointUnstorable.self) { try await ledger.checkpoint(checkpoint) }
    #expect(ledger.mayWrite)
    await Task.detached { loop.shutdown() }.value
  }

  @Test("a payload of more than 256 KiB is refused, and costs the run nothing")
  func longPayload() async throws {
    let loop = EventLoop(name: "ownership-test")
    let ledger = ledger(TestStore(), Fence(until: .now + .seconds(3600)), loop: loop)
    let long = Checkpoint(payload: [UInt8](repeating: UInt8(ascii: "1"), count: 256 << 10 + 1))
    await #expect(throws: CheckpointTooLong.self) { try await ledger.checkpoint(long) }
    #expect(ledger.mayWrite)
    await Task.detached { loop.shutdown() }.value
  }

  @Test("a run writes nothing once the fence of its lease is closed")
  func closedFence() async throws {
    let loop = EventLoop(name: "ownership-test")
    let fence = Fence(until: .now + .seconds(3600))
    let ledger = ledger(TestStore(), fence, loop: loop)
    #expect(ledger.mayWrite)
    fence.close()
    #expect(!ledger.mayWrite)
    await #expect(throws: OwnershipLost.self) { try await ledger.checkpoint(Checkpoint.sample) }
    await Task.detached { loop.shutdown() }.value
  }
}

extension Checkpoint {
  fileprivate static let sample = Checkpoint(bytesDone: 10, bytesTotal: 100)
}
