import TaskCore

/// The order to delete what a removed or canceled task left elsewhere, such as a staging file.
package struct Cleanup: Hashable, Sendable {
  package var id: Int64
  package var spec: TaskSpec
  /// The task's last checkpoint. The task itself no longer has it.
  package var checkpoint: Checkpoint?
  /// Whether the files that the task made are deleted too.
  package var files: Bool
  /// How often the clean-up was claimed, from 1.
  package var attempt: Int

  package init(id: Int64, spec: TaskSpec, checkpoint: Checkpoint?, files: Bool, attempt: Int) {
    self.id = id
    self.spec = spec
    self.checkpoint = checkpoint
    self.files = files
    self.attempt = attempt
  }
}

/// The part of the store that keeps clean-ups until they are done. The transaction that removes or cancels the task
/// writes them. Each clean-up is done at least once.
///
/// Every call throws ``StoreError``.
package protocol CleanupStore: Sendable {
  /// Claims up to `limit` clean-ups whose kind and storages the worker has, for 60 seconds. After that, another worker
  /// may claim them. Returns none if the worker's lease is over.
  func claimCleanups(_ worker: WorkerID, limit: Int) async throws -> [Cleanup]
  /// Deletes clean-ups that are done.
  func finishCleanups(_ ids: [Int64]) async throws
  /// Lets a clean-up be claimed again after `delay`. `error` is kept for people to read.
  func postponeCleanup(_ id: Int64, after delay: Duration, error: String) async throws
}
