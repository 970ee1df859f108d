import ReelhaulSystem
import TaskCore

// The staging file: opened, synced, recorded.
extension Download {
  /// Begins a new generation's file. The older one is of no use to anybody any more.
  func openStaging(generation: Int, size: Int64?) {
    let old = staged
    let new = StagedFile(generation: generation, size: size)
    use(new)
    loop.task { [self] in
      let result = await create(generation: generation, size: size, removing: old?.file)
      new.opened(result)
      // A run that was stopped meanwhile is over: nothing of it may go on.
      guard staged === new, !isFinished else { return }
      switch result {
      case .success(let file): opened(file)
      case .failure(let error): storageFailed(error)
      }
    }
  }

  func use(_ file: StagedFile) {
    follower?.close()
    follower = nil
    staged = file
    lastSync = Clocks.boottime()
    recorded = (file.durable.count, lastSync)
  }

  func opened(_ file: StagingFile) {
    if hashes {
      follower = DigestFollower(file: file, withMD5: spec.expect.md5 != nil, pool: context.digests, loop: loop)
      follower?.follow(staged?.written.prefixEnd ?? 0)
    }
    if isLimited || (staged?.size ?? .max) > options.limits.firstChunk { startTimer() }
  }

  var hashes: Bool { options.hashes || spec.expect.sha256 != nil || spec.expect.md5 != nil }

  private func create(
    generation: Int, size: Int64?, removing old: StagingFile?
  ) async -> Result<StagingFile, StorageError> {
    let (storage, destination, ledger) = (context.storage, destination, ledger)
    let name = StagingName(task: spec.id, epoch: ledger.epoch, generation: generation)
    return await attempt { () throws(StorageError) in
      // It may have waited for a thread for long.
      guard ledger.mayWrite else { throw StorageError(.other, "the task has another owner") }
      if let old { try old.volume.discard(old.name) }
      let file = try storage.create(for: destination, name: name)
      if let size { try file.reserve(size) }
      return file
    }
  }

  /// Runs a blocking call on the pool.
  func attempt<Value: Sendable>(
    _ body: @escaping @Sendable () throws(StorageError) -> Value
  ) async -> Result<Value, StorageError> {
    do {
      return .success(try await context.files.run { try body() })
    } catch let error as StorageError {
      return .failure(error)
    } catch {
      return .failure(StorageError(.other, "the engine is shutting down"))
    }
  }

  /// Starts a sync when enough is written, or long enough ago.
  func syncIfDue(now: Int64) {
    guard !syncing.isClosed, !isPublishing, let staged, let file = staged.file, staged.unsynced > 0,
      staged.unsynced >= options.syncBytes || now - lastSync >= options.syncInterval.nanoseconds
    else { return }
    syncing.close()
    loop.task { [self] in await sync(staged, file) }
  }

  /// Data before offset, and one at a time: what was written before the sync is recorded after it.
  private func sync(_ staged: StagedFile, _ file: StagingFile) async {
    syncing.close()
    let begun = Clocks.boottime()
    lastSync = begun
    let covered = staged.written
    let step = options.syncBytes
    let tail = await attempt { () throws(StorageError) in
      // What vanished while it was open could still be written to, and would be lost.
      try file.volume.check()
      // Where the length is unknown, space is taken as the file grows.
      if staged.size == nil { try file.reserve(covered.end + step) }
      try file.sync()
      return try TailCheck.crc(of: covered, in: file)
    }
    switch tail {
    case .success(let crc):
      staged.synced(covered)
      await record(covered, tailCRC: crc, of: staged, file)
      if staged === self.staged { recorded = (covered.count, begun) }
    case .failure(let error):
      if staged === self.staged { storageFailed(error) }
    }
    syncing.open()
  }

  private func record(_ done: ByteRanges, tailCRC: UInt32?, of staged: StagedFile, _ file: StagingFile) async {
    guard staged === self.staged, machine.isResumable, let identity = machine.identity,
      machine.generation == staged.generation
    else { return }
    let checkpoint = DownloadCheckpoint(
      generation: staged.generation, identity: identity, volume: file.volume.id,
      stagingName: file.name.description, done: done, tailCRC: tailCRC)
    do {
      try await ledger.checkpoint(checkpoint)
      staged.isRecorded = true
    } catch {
      fail(.unrecorded(error))
    }
  }

  /// Records what is written at the end of a run that did not get everything; what cannot be resumed is removed. What was
  /// recorded of a version that the source may have left is the next run's, as long as no other was begun.
  func recordRest() async {
    await syncing.opened()
    guard !isVerified, let staged, let file = staged.file, ledger.mayWrite else { return }
    if machine.generation == staged.generation, machine.isResumable {
      if staged.unsynced > 0 { await sync(staged, file) }
      // Nobody knows when it goes on: what is promised to the rest may be others' until then.
      let end = staged.written.end
      _ = await attempt { () throws(StorageError) in try file.truncate(to: end) }
    } else if machine.generation == staged.generation || !staged.isRecorded {
      _ = await attempt { () throws(StorageError) in try file.volume.discard(file.name) }
    }
  }
}

extension TaskFailure {
  /// The ledger did not take a checkpoint.
  static func unrecorded(_ error: any Error) -> TaskFailure {
    TaskFailure(code: .checkpointFailed, message: "progress could not be recorded: \(error)", class: .wait)
  }
}
