import ReelhaulSystem
import ReelhaulTelemetry
import TaskStore

/// Writes checkpoints and settlements of running tasks. Many checkpoints share one call, and so do many settlements.
package struct StoreBatcher: Sendable {
  private static let limit = 500

  private let metrics: WorkerMetrics
  private let checkpoints: Batcher<CheckpointWrite, Bool>
  private let settlements: Batcher<Settlement, Bool>
  private let failures: Batcher<ServerFailure, Bool>

  package init(store: any RunStore, loop: EventLoop, metrics: WorkerMetrics = WorkerMetrics(kinds: []), log: Logger) {
    self.metrics = metrics
    checkpoints = Batcher("checkpoints", limit: Self.limit, loop: loop, log: log) { try await store.checkpoint($0) }
    settlements = Batcher("settlements", limit: Self.limit, loop: loop, log: log) { batch in
      let sentAt = BootInstant.now
      let answers = try await store.settle(batch)
      metrics.settlements.observe(nanoseconds: sentAt.duration(to: .now).nanoseconds)
      return answers
    }
    failures = Batcher("failures at servers", limit: Self.limit, loop: loop, log: log) { try await store.note($0) }
  }

  /// Returns once the write is committed. Throws ``OwnershipLost``, or ``StoreError`` if the store refuses it.
  package func checkpoint(_ write: CheckpointWrite, under lease: Lease, patience: Duration = .zero) async throws {
    guard try await submitted({ try await checkpoints.submit(write, fence: lease.fence, patience: patience) }) else {
      throw OwnershipLost()
    }
  }

  /// Returns whether the epoch still owned the task; throws as ``checkpoint(_:under:patience:)`` does.
  package func settle(_ settlement: Settlement, under lease: Lease) async throws -> Bool {
    try await submitted { try await settlements.submit(settlement, fence: lease.fence) }
  }

  /// Returns whether the server is out; throws ``OwnershipLost`` or ``StoreError``.
  package func note(_ failure: ServerFailure, under lease: Lease) async throws -> Bool {
    try await failures.submit(failure, fence: lease.fence)
  }

  private func submitted(_ write: () async throws -> Bool) async throws -> Bool {
    do {
      let isOwner = try await write()
      if !isOwner { metrics.refused(.epoch) }
      return isOwner
    } catch let error as OwnershipLost {
      metrics.refused(.lease)
      throw error
    }
  }
}

/// The run no longer owns the task. Code that catches this error stops, and writes nothing more for the task.
package struct OwnershipLost: Error, Hashable, Sendable {
  package init() {}
}
