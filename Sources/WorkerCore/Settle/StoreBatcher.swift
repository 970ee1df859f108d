import ReelhaulSystem
import ReelhaulTelemetry
import TaskStore

/// Writes checkpoints and settlements of running tasks. Many checkpoints share one call, and so do many settlements.
package struct StoreBatcher: Sendable {
  private static let limit = 500

  private let checkpoints: Batcher<CheckpointWrite, Bool>
  private let settlements: Batcher<Settlement, Bool>

  package init(store: any RunStore, loop: EventLoop, log: Logger) {
    checkpoints = Batcher("checkpoints", limit: Self.limit, loop: loop, log: log) { try await store.checkpoint($0) }
    settlements = Batcher("settlements", limit: Self.limit, loop: loop, log: log) { try await store.settle($0) }
  }

  /// Returns once the write is committed. Throws ``OwnershipLost``, or ``StoreError`` if the store refuses it.
  package func checkpoint(_ write: CheckpointWrite, under lease: Lease) async throws {
    guard try await checkpoints.submit(write, fence: lease.fence) else { throw OwnershipLost() }
  }

  /// Returns whether the epoch still owned the task; throws as ``checkpoint(_:under:)`` does.
  package func settle(_ settlement: Settlement, under lease: Lease) async throws -> Bool {
    try await settlements.submit(settlement, fence: lease.fence)
  }
}

/// The run no longer owns the task. Code that catches this error stops, and writes nothing more for the task.
package struct OwnershipLost: Error, Hashable, Sendable {
  package init() {}
}
