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
  package var line: CleanupLine

  /// - Parameter line: where the store has another one than that of `spec`.
  package init(
    id: Int64, spec: TaskSpec, checkpoint: Checkpoint?, files: Bool, attempt: Int, line: CleanupLine? = nil
  ) {
    self.id = id
    self.spec = spec
    self.checkpoint = checkpoint
    self.files = files
    self.attempt = attempt
    self.line = line ?? CleanupLine(spec)
  }
}

/// Clean-ups that wait for the same handler and the same storages.
package struct CleanupLine: Hashable, Sendable {
  package var kind: TaskKind
  package var storage: String
  package var sourceStorage: String

  package init(kind: TaskKind, storage: String, sourceStorage: String) {
    self.kind = kind
    self.storage = storage
    self.sourceStorage = sourceStorage
  }

  /// What was sent to a server is ended there without the storage of the source, which may be gone.
  package init(_ spec: TaskSpec) {
    let lane = LaneKey(spec)
    let isOfServer = [.upload, .copy].contains(spec.kind) && !StorageURL.hasScheme((spec.destination ?? "").utf8)
    self.init(kind: lane.kind, storage: isOfServer ? "" : lane.storage, sourceStorage: lane.sourceStorage)
  }

  /// The names of the storages that a worker needs.
  package var storages: [String] { [storage, sourceStorage].filter { !$0.isEmpty } }
}

/// The part of the store that keeps clean-ups until they are done. They are written in the transaction that removes or
/// cancels the task; each is done at least once.
///
/// Every call throws ``StoreError``.
package protocol CleanupStore: Sendable {
  /// Takes up to `limit` clean-ups whose kind and storages the worker has, for 60 seconds: after that another worker may
  /// take them. None of the lines `busy`; nothing where the worker's lease is over.
  func claimCleanups(_ worker: WorkerID, limit: Int, except busy: Set<CleanupLine>) async throws -> [Cleanup]
  /// They are done.
  func finishCleanups(_ ids: [Int64]) async throws
  /// Lets clean-ups that were not tried be claimed again at once. It does not count as an attempt.
  func returnCleanups(_ ids: [Int64]) async throws
  /// Lets a clean-up be claimed again after `delay`. `error` is kept for people to read.
  func postponeCleanup(_ id: Int64, after delay: Duration, error: String) async throws
}

extension CleanupStore {
  package func claimCleanups(_ worker: WorkerID, limit: Int) async throws -> [Cleanup] {
    try await claimCleanups(worker, limit: limit, except: [])
  }
}
