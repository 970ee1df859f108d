import TaskCore
import TaskStore
import TransferEngine

/// Carries out downloads with the transfer engine.
package struct DownloadHandler: KindHandler {
  package let kind = TaskKind.download
  private let roots: StorageRoots
  private let engine: DownloadEngine

  package init(roots: StorageRoots) {
    self.roots = roots
    engine = DownloadEngine(roots: roots)
  }

  package func run(_ claim: Claim, ledger: RunLedger) async -> RunOutcome {
    // A checkpoint that cannot be read comes from another version of this program: then the bytes are fetched again.
    let checkpoint = claim.checkpoint.flatMap { try? DownloadCheckpoint($0) }
    let outcome = await HostLine.$current.withValue(ledger.line) {
      await engine.run(claim.spec, from: checkpoint, ledger: ledger)
    }
    return RunOutcome(outcome)
  }

  package func cleanUp(_ cleanup: Cleanup) async throws {
    try await roots.cleanUp(
      cleanup, checkpoints: [cleanup.checkpoint].compactMap(\.self), publishers: [cleanup.spec.id])
  }
}

extension RunOutcome {
  init(_ outcome: DownloadOutcome) {
    self =
      switch outcome {
      case .succeeded(let sha256, let bytes, let verification):
        .succeeded(sha256: sha256, bytes: bytes, output: verification?.output)
      case .failed(let failure): .failed(failure)
      case .stopped: .stopped
      }
  }
}

extension RunLedger: DownloadLedger {
  package func checkpoint(_ checkpoint: DownloadCheckpoint, patience: Duration) async throws {
    try await self.checkpoint(checkpoint.envelope, patience: patience)
  }
}

extension StorageRoots {
  /// Deletes the staging files that downloads of a task recorded. With ``Cleanup/files`` it also deletes the file at
  /// the task's destination, if one of `publishers` (the ids of the downloads) published it.
  ///
  /// Throws ``StorageError`` if the volume with the staging file is not mounted.
  package func cleanUp(_ cleanup: Cleanup, checkpoints: [Checkpoint], publishers: [UniqueID]) async throws {
    let destination = cleanup.spec.destination.flatMap { try? StorageURL($0) }
    for checkpoint in checkpoints { try await discard(checkpoint, of: publishers, preferring: destination?.root) }
    guard cleanup.files, let destination else { return }
    guard let root = self[destination.root] else { throw StorageError.unknownRoot(destination.root) }
    _ = try await root.withVolume { try $0.removePublished(at: destination, by: publishers) }
  }

  /// Deletes the staging file that a download recorded, if it is that of one of `publishers`. Tries the root `first` before
  /// all others, because another root may hang.
  package func discard(
    _ checkpoint: Checkpoint, of publishers: [UniqueID], preferring first: String? = nil
  ) async throws {
    guard let checkpoint = try? DownloadCheckpoint(checkpoint), let name = StagingName(checkpoint.stagingName),
      publishers.contains(name.task)
    else { return }
    let volume = checkpoint.volume
    let names = storage.roots.keys.sorted { ($0 != first ? 1 : 0, $0) < ($1 != first ? 1 : 0, $1) }
    for case let root? in names.map({ self[$0] }) {
      guard let mounted = try? await root.withVolume({ $0 }), mounted.id == volume else { continue }
      return try await root.withVolume { _ in try mounted.discard(name) }
    }
    throw StorageError(.volumeGone, "the staging file \(name) is on volume \(volume), which is not mounted")
  }
}
