import ReelhaulSystem
import Synchronization
import TaskCore
import TaskStore
import TransferEngine

/// Records the work of one run: checkpoints go to the store, and the sampler reads the progress from here.
///
/// Callable from any thread.
package final class RunLedger: Sendable {
  private static let unknown: Int64 = -1

  package let claim: Claim
  package let lease: Lease
  /// The span of this run, if it is in a trace.
  package let trace: TraceContext?
  /// Whether the transfer of this run stands in line. Handlers of other kinds never do: they may do other work meanwhile.
  package let line = HostLine()
  package let begunAt = BootInstant.now
  private let store: StoreBatcher
  private let done: Atomic<Int64>
  private let total: Atomic<Int64>
  private let pulses = Atomic(0)
  private let recorded: Atomic<Int64>
  private let generation: Atomic<Int>
  private let lost = Atomic(false)
  private let stop = Lock<StopReason?>(nil)
  private let rest = Lock<(@Sendable (_ hasSucceeded: Bool) async -> Void)?>(nil)

  package init(claim: Claim, lease: Lease, store: StoreBatcher, trace: TraceContext? = nil) {
    self.claim = claim
    self.lease = lease
    self.store = store
    self.trace = trace
    let before = claim.checkpoint?.bytesDone ?? 0
    done = Atomic(before)
    total = Atomic(claim.checkpoint?.bytesTotal ?? Self.unknown)
    recorded = Atomic(before)
    generation = Atomic(claim.checkpoint?.generation ?? 0)
  }

  /// Returns once the store has committed the checkpoint. It may be written up to `patience` later, with others.
  ///
  /// Throws ``OwnershipLost`` if this run no longer owns the task, ``StoreError`` if the store refuses the checkpoint,
  /// and ``CheckpointTooLong`` or ``CheckpointUnstorable``.
  package func checkpoint(_ checkpoint: Checkpoint, patience: Duration = .zero) async throws {
    guard mayWrite else { throw OwnershipLost() }
    guard checkpoint.payload.count <= Checkpoint.payloadLimit else {
      throw CheckpointTooLong(bytes: checkpoint.payload.count)
    }
    guard !TaskSpec.hasNUL(json: checkpoint.payload) else { throw CheckpointUnstorable() }
    do {
      let write = CheckpointWrite(taskID: claim.spec.id, epoch: claim.epoch, checkpoint: checkpoint)
      try await store.checkpoint(write, under: lease, patience: patience)
    } catch let error as OwnershipLost {
      disown()
      throw error
    }
    recorded.store(checkpoint.bytesDone, ordering: .relaxed)
    generation.store(checkpoint.generation, ordering: .relaxed)
  }

  package var epoch: Int { claim.epoch }

  /// Cheap: it only stores two numbers in memory.
  package func progress(bytesDone: Int64, bytesTotal: Int64?) {
    done.store(max(0, bytesDone), ordering: .relaxed)
    total.store(bytesTotal ?? Self.unknown, ordering: .relaxed)
  }

  package func pulse() {
    pulses.add(1, ordering: .relaxed)
  }

  /// Whether this run may change anything now. It is checked before every write to a file.
  package var mayWrite: Bool { !isLost && lease.fence.isOpen }

  /// Whether this run has lost its task, so that nothing more may be written for it.
  package var isLost: Bool { lost.load(ordering: .acquiring) }

  /// Why the run must stop; nil if it need not.
  package var stopReason: StopReason? { isLost || !lease.fence.isOpen ? .abandoned : stop.withLock { $0 } }

  package func tellToStop(_ reason: StopReason) {
    stop.withLock { $0 = reason }
  }

  package func disown() {
    lost.store(true, ordering: .releasing)
  }

  /// Leaves work of the run for the time when its end is written, which must not wait for it. `work` is told whether the
  /// task has succeeded: otherwise another run may go on with what this one has left, or does already.
  package func leave(_ work: @escaping @Sendable (_ hasSucceeded: Bool) async -> Void) {
    rest.withLock { $0 = work }
  }

  /// The end of the run is written, or will not be: nothing more is recorded, whatever the handler left running somewhere.
  /// Carries out what the run has left.
  package func finish(hasSucceeded: Bool) async {
    disown()
    await rest.withLock { $0.take() }?(hasSucceeded)
  }

  package var bytesDone: Int64 { done.load(ordering: .relaxed) }

  var place: HostLine.Place { line.place }

  /// The number of pulses. It changes while the run is alive.
  var pulseCount: Int { pulses.load(ordering: .relaxed) }

  package var bytesTotal: Int64? {
    let bytes = total.load(ordering: .relaxed)
    return bytes == Self.unknown ? nil : bytes
  }

  /// The generation of the last recorded checkpoint.
  var recordedGeneration: Int { generation.load(ordering: .relaxed) }

  /// The bytes of the last recorded checkpoint.
  package var recordedBytes: Int64 { recorded.load(ordering: .relaxed) }

  /// How many bytes of this generation this run has recorded.
  package var newBytes: Int64 {
    let isSameGeneration = recordedGeneration == claim.checkpoint?.generation ?? 0
    let before = isSameGeneration ? claim.checkpoint?.bytesDone ?? 0 : 0
    return max(0, recorded.load(ordering: .relaxed) - before)
  }
}

/// A payload is longer than ``Checkpoint/payloadLimit``.
package struct CheckpointTooLong: Error, Hashable, Sendable, CustomStringConvertible {
  package var bytes: Int

  package var description: String {
    "the checkpoint has \(bytes) bytes, but may have at most \(Checkpoint.payloadLimit)"
  }
}

/// A text of the payload has the character NUL: PostgreSQL's JSON could be written, and not be read.
package struct CheckpointUnstorable: Error, Hashable, Sendable, CustomStringConvertible {
  package var description: String { "a text of the checkpoint has the character NUL, which the store cannot keep" }
}
