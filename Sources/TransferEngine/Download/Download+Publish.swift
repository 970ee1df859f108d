import ReelhaulDigest
import ReelhaulSystem
import TaskCore

// From "all bytes are written" to the file at its destination.
extension Download {
  enum PublishResult {
    case ended(DownloadOutcome)
    /// To be fetched anew.
    case digestMismatch(DigestMismatch)
    /// Told to stop before anything was published.
    case interrupted
    case failed(TaskFailure)
  }

  /// Bytes on stable storage → digests → `publishing` recorded → renamed → directory on stable storage. What a crash
  /// between any two of them leaves is ``PublishRecovery``'s.
  func publish(bytes: Int64) async -> PublishResult {
    await syncing.opened()
    await staged?.opening.opened()
    // The last sync may have failed, which ended the run.
    guard machine.phase == .complete, let staged, let file = staged.file, let identity = machine.identity,
      ledger.mayWrite
    else { return .interrupted }
    do {
      let digests = try await verify(staged, file, bytes: bytes)
      guard ledger.mayWrite else { return .interrupted }
      if let mismatch = DigestMismatch(spec.expect, digests) { return .digestMismatch(mismatch) }
      if isStopping { return .interrupted }
      // Before it is recorded: whether a commit that fails was made is not known.
      isVerified = true
      try await ledger.checkpoint(publishing(staged, file, identity, bytes: bytes, sha256: digests?.sha256))
      guard ledger.mayWrite else { return .interrupted }
      let (destination, spec, ledger) = (destination, spec, ledger)
      let publication = try await context.files.run {
        // It may have waited for a thread for long.
        ledger.mayWrite ? try file.volume.publish(file, to: destination, ifExists: spec.ifExists) : nil
      }
      switch publication {
      case nil: return .interrupted
      case .published: return .ended(.succeeded(sha256: digests?.sha256, bytes: bytes))
      case .skipped:
        let existing = ExistingFile(
          volume: file.volume, destination: destination, expect: spec.expect, read: WholeRead(ledger))
        return .ended(try await context.readWhole(for: ledger) { try existing.outcome() })
      }
    } catch let error as StorageError {
      return .failed(error.failure)
    } catch is CancellationError {
      return .interrupted
    } catch {
      return .failed(.unrecorded(error))
    }
  }

  /// Data to stable storage, and the digests of all bytes, where there are any. Throws `CancellationError` where the run is
  /// to end before: that of a large file takes minutes.
  private func verify(
    _ staged: StagedFile, _ file: StagingFile, bytes: Int64
  ) async throws -> FileDigests? {
    if staged.size == nil { try await context.files.run { try file.truncate(to: bytes) } }
    guard let follower else {
      try await context.files.run { try file.sync() }
      return nil
    }
    return try await follower.finish(size: bytes) { [self] in
      ledger.pulse()
      return !isStopping && ledger.mayWrite
    }
  }

  private func publishing(
    _ staged: StagedFile, _ file: StagingFile, _ identity: SourceIdentity, bytes: Int64, sha256: [UInt8]?
  ) -> DownloadCheckpoint {
    var identity = identity
    identity.size = bytes
    var done = ByteRanges()
    done.insert(0..<bytes)
    return DownloadCheckpoint(
      generation: staged.generation, identity: identity, volume: file.volume.id,
      stagingName: file.name.description, done: done, publishing: DownloadCheckpoint.Publishing(sha256: sha256 ?? []))
  }
}
