import ReelhaulSystem
import TaskCore

/// Whose bytes a ``StagingWriter`` collects.
protocol StagingOwner: AnyObject {
  /// The version that the bytes of `generation` are recorded as; `nil` where they cannot be resumed.
  func recordable(generation: Int) -> SourceIdentity?
  /// The present file is open.
  func opened(_ file: StagedFile)
  /// The file, or what is recorded of it, cannot be written.
  func stagingFailed(_ failure: TaskFailure)
}

/// Collects a task's bytes in a staging file: opened, synced and recorded while more arrive.
// @unchecked: touched on its loop alone.
final class StagingWriter: @unchecked Sendable {
  private let root: StorageRoot
  private let spec: TaskSpec
  private let destination: StorageURL
  private let ledger: any DownloadLedger
  private let options: DownloadOptions
  /// Set by the owner itself, before anything begins.
  weak var owner: (any StagingOwner)?
  /// The present generation's file.
  private(set) var staged: StagedFile?
  private(set) var follower: DigestFollower?
  /// Closed while a sync runs and what it covers is recorded.
  let syncing = Latch()
  private var policy: SyncPolicy
  private var isClosed = false

  init(
    _ spec: TaskSpec, destination: StorageURL, ledger: any DownloadLedger, context: DownloadContext
  ) {
    self.spec = spec
    self.destination = destination
    self.ledger = ledger
    root = context.root
    options = context.options
    policy = Self.policy(options, recorded: 0)
  }

  private static func policy(_ options: DownloadOptions, recorded: Int64) -> SyncPolicy {
    SyncPolicy(
      bytes: options.syncBytes, interval: options.syncInterval, exposure: options.exposure, recorded: recorded,
      now: Clocks.boottime())
  }

  /// The run is over: a file that opens late is left to the next one.
  func close() {
    isClosed = true
    follower?.close()
  }

  /// Begins a new generation's file. The older one is of no use to anybody any more.
  func open(generation: Int, size: Int64?) {
    let old = staged
    let new = StagedFile(generation: generation, size: size)
    use(new)
    root.loop.task { [self] in
      let result = await create(generation: generation, size: size, removing: old?.file)
      new.opened(result)
      // A run that was stopped meanwhile is over: nothing of it may go on.
      guard staged === new, !isClosed else { return }
      switch result {
      case .success(let file): opened(new, file)
      case .failure(let error): owner?.stagingFailed(failure(for: error))
      }
    }
  }

  /// Goes on with a file that an earlier run left; with `isWanted` false it is only known, until the first answer opens
  /// another one.
  func adopt(_ file: StagingFile, size: Int64?, done: ByteRanges, isWanted: Bool) {
    let new = StagedFile(file, size: size, done: done)
    use(new)
    if isWanted { opened(new, file) }
  }

  private func use(_ file: StagedFile) {
    follower?.close()
    follower = nil
    staged = file
    policy = Self.policy(options, recorded: file.durable.count)
  }

  private func opened(_ staged: StagedFile, _ file: StagingFile) {
    if options.hashes || spec.expect.sha256 != nil || spec.expect.md5 != nil {
      follower = DigestFollower(
        file: file, withMD5: spec.expect.md5 != nil, pool: root.digests, loop: root.loop)
      follower?.follow(staged.written.prefixEnd)
    }
    owner?.opened(staged)
  }

  private func create(
    generation: Int, size: Int64?, removing old: StagingFile?
  ) async -> Result<StagingFile, StorageError> {
    let (storage, destination, ledger) = (root.storage, destination, ledger)
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
  private func attempt<Value: Sendable>(
    _ body: @escaping @Sendable () throws(StorageError) -> Value
  ) async -> Result<Value, StorageError> {
    do {
      return .success(try await root.files.run { try body() })
    } catch let error as StorageError {
      return .failure(error)
    } catch {
      return .failure(StorageError(.other, "the engine is shutting down"))
    }
  }
}

// What is written reaches stable storage, and the store.
extension StagingWriter {
  /// Whether so much waits to be recorded that nothing more may be received: `resume` is called when it is.
  func mustWaitForRecord(_ file: StagedFile, then resume: @escaping @Sendable () -> Void) -> Bool {
    guard syncing.isClosed, policy.mustWait(written: file.written.count, now: Clocks.boottime()) else { return false }
    syncing.whenOpen(resume)
    return true
  }

  /// Starts a sync when enough is written, or long enough ago.
  func syncIfDue(now: Int64) {
    guard !syncing.isClosed, let staged, let file = staged.file, policy.isDue(unsynced: staged.unsynced, now: now)
    else { return }
    syncing.close()
    root.loop.task { [self] in await sync(staged, file) }
  }

  /// Data before offset, and one at a time: what was written before the sync is recorded after it.
  private func sync(_ staged: StagedFile, _ file: StagingFile) async {
    syncing.close()
    let begun = Clocks.boottime()
    policy.began(now: begun)
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
      if staged === self.staged { policy.recorded(covered.count, since: begun) }
    case .failure(let error):
      if staged === self.staged { owner?.stagingFailed(failure(for: error)) }
    }
    syncing.open()
  }

  private func record(_ done: ByteRanges, tailCRC: UInt32?, of staged: StagedFile, _ file: StagingFile) async {
    guard staged === self.staged, let identity = owner?.recordable(generation: staged.generation) else { return }
    let checkpoint = DownloadCheckpoint(
      generation: staged.generation, identity: identity, volume: file.volume.id,
      stagingName: file.name.description, done: done, tailCRC: tailCRC)
    do {
      try await ledger.checkpoint(checkpoint)
      staged.isRecorded = true
    } catch {
      owner?.stagingFailed(.unrecorded(error))
    }
  }

  /// Records what is written at the end of a run that did not get everything; what cannot be resumed is removed. What was
  /// recorded of a version that the source may have left is the next run's, as long as no other was begun.
  ///
  /// - Parameter generation: the one that would be fetched next.
  func recordRest(generation: Int) async {
    await syncing.opened()
    guard let staged, let file = staged.file, ledger.mayWrite else { return }
    if owner?.recordable(generation: staged.generation) != nil {
      if staged.unsynced > 0 { await sync(staged, file) }
      // Nobody knows when it goes on: what is promised to the rest may be others' until then.
      let end = staged.written.end
      _ = await attempt { () throws(StorageError) in try file.truncate(to: end) }
    } else if generation == staged.generation || !staged.isRecorded {
      _ = await attempt { () throws(StorageError) in try file.volume.discard(file.name) }
    }
  }

  /// The run's failure for a storage error. A full disk waits for room, unless this task fills it by itself.
  func failure(for error: StorageError) -> TaskFailure {
    var failure = error.failure
    if error.code == .diskFull, let staged, staged.size == nil, !staged.written.isEmpty {
      // Nothing of a source of unknown length is kept: it is not fetched again every few seconds.
      failure.retryAfter = RetryPolicy.longestBackoff
      // One that fills the disk by itself would do so again and again: that counts.
      if staged.file?.fillsVolume == true { failure.class = .retry }
    }
    return failure
  }
}

extension TaskFailure {
  /// The ledger did not take a checkpoint.
  static func unrecorded(_ error: any Error) -> TaskFailure {
    TaskFailure(code: .checkpointFailed, message: "progress could not be recorded: \(error)", class: .wait)
  }
}
