import Digest
import System
import TaskCore

// From "all bytes are written" to the file at its destination.
extension Download {
  enum PublishResult {
    case ended(DownloadOutcome)
    /// To be fetched anew.
    case digestMismatch
    /// Told to stop before anything was published.
    case interrupted
    case failed(TaskFailure)
  }

  /// Carries out the steps of ``PublishMachine`` for the file just fetched.
  func publish(bytes: Int64) async -> PublishResult {
    await syncing.opened()
    await staged?.opening.opened()
    // The last sync may have failed, which ended the run.
    guard machine.phase == .complete, let staged, let file = staged.file else { return .interrupted }
    var steps = PublishMachine(expect: spec.expect)
    var action = steps.begin()
    while true {
      if case .record = action, isStopping { return .interrupted }
      guard ledger.mayWrite else { return .interrupted }
      switch action {
      case .verify:
        action = steps.handle(await verify(staged, file, bytes: bytes))
      case .record(let publishing):
        action = steps.handle(await record(publishing, of: staged, file, bytes: bytes))
      case .move:
        action = steps.handle(await move(file))
      case .succeed(let sha256): return .ended(.succeeded(sha256: sha256, bytes: bytes))
      case .digestMismatch: return .digestMismatch
      case .fail(let failure): return .failed(failure)
      case .inspectDestination, .restart: return .interrupted
      }
    }
  }

  private func verify(_ staged: StagedFile, _ file: StagingFile, bytes: Int64) async -> PublishMachine.Event {
    do {
      if staged.size == nil { try await context.files.run { try file.truncate(to: bytes) } }
      guard let follower else {
        try await context.files.run { try file.sync() }
        staged.synced(staged.written)
        return .verified(sha256: nil, md5: nil)
      }
      let digests = try await follower.finish(size: bytes)
      staged.synced(staged.written)
      return .verified(sha256: digests.sha256, md5: digests.md5)
    } catch let error as StorageError {
      return .failed(error.failure)
    } catch {
      return .failed(.unrecorded(error))
    }
  }

  private func record(
    _ publishing: Checkpoint.Publishing, of staged: StagedFile, _ file: StagingFile, bytes: Int64
  ) async -> PublishMachine.Event {
    guard var identity = machine.identity else { return .failed(.unrecorded(CancellationError())) }
    identity.size = bytes
    var done = ByteRanges()
    done.insert(0..<bytes)
    let checkpoint = Checkpoint(
      generation: staged.generation, identity: identity, volume: file.volume.id,
      stagingName: file.name.description, done: done, publishing: publishing)
    do {
      try await ledger.checkpoint(checkpoint)
      return .recorded
    } catch {
      return .failed(.unrecorded(error))
    }
  }

  private func move(_ file: StagingFile) async -> PublishMachine.Event {
    let (storage, destination, ifExists) = (context.storage, destination, spec.ifExists)
    let result = await attempt { () throws(StorageError) in
      try storage.publish(file, to: destination, ifExists: ifExists)
    }
    switch result {
    case .success(.published): return .moved
    case .success(.skipped): return .skipped
    case .failure(let error): return .failed(error.failure)
    }
  }
}
