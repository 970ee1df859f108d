import ReelhaulSystem
import TaskCore

/// Collects a task's bytes in a staging file. It opens, syncs and records the file while more bytes arrive.
// @unchecked: used only on its loop.
final class StagingWriter: @unchecked Sendable {
  private let root: StorageRoot
  private let spec: TaskSpec
  private let destination: StorageURL
  private let ledger: any DownloadLedger
  private let options: DownloadOptions
  /// The owner sets this before the run begins.
  weak var owner: Download?
  /// The present generation's file.
  private(set) var staged: StagedFile?
  private(set) var follower: DigestFollower?
  /// Closed while a sync runs and its bytes are being recorded.
  let syncing = Latch()
  private var policy: SyncPolicy
  private var isClosed = false
  /// Counts in the root's ``SyncPace``.
  private var isPaced = false
  /// Fires when the run may stand still.
  private var stall: LoopTimer?

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

  /// The run is over. A file that is opened after this is not used.
  func close() {
    isClosed = true
    if isPaced { root.pace.leave() }
    isPaced = false
    stall?.cancel()
    stall = nil
    follower?.close()
  }

  /// Begins a new generation's file, and removes the former one.
  func open(generation: Int, size: Int64?) {
    let old = staged
    root.metrics.wasted(old?.written.count ?? 0, .newGeneration)
    let new = StagedFile(generation: generation, size: size)
    use(new)
    root.loop.task { [self] in
      let result = await create(generation: generation, size: size, removing: old?.file)
      new.opened(result)
      guard staged === new, !isClosed else {
        // The run, or the generation, has ended in the meantime. Nothing names the file.
        if case .success(let file) = result { await remove(file) }
        return
      }
      switch result {
      case .success(let file): opened(new, file)
      case .failure(let error): owner?.stagingFailed(failure(for: error))
      }
    }
  }

  /// Continues the file of an earlier run. If `isWanted` is false, the file is only remembered, and removed when the
  /// first answer opens another one.
  func adopt(_ file: StagingFile, size: Int64?, done: ByteRanges, isWanted: Bool) {
    let new = StagedFile(file, size: size, done: done)
    use(new)
    if isWanted { opened(new, file) }
  }

  private func use(_ file: StagedFile) {
    follower?.close()
    follower = nil
    staged = file
    if !isPaced, !isClosed {
      isPaced = true
      root.pace.enter()
    }
    policy = Self.policy(options, recorded: file.durable.count)
  }

  private func opened(_ staged: StagedFile, _ file: StagingFile) {
    if options.hashes || spec.allowUnframed || spec.expect.hasDigest {
      follower = DigestFollower(
        file: file, withMD5: spec.expect.md5 != nil, digests: root.digests, files: root.files, loop: root.loop)
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
      // This call may have waited a long time for a thread.
      guard ledger.mayWrite else { throw StorageError(.other, "the task has another owner") }
      if let old { try old.volume.discard(old.name) }
      let file = try storage.create(for: destination, name: name)
      do throws(StorageError) {
        if let size { try file.reserve(size) }
      } catch {
        // It may have got a part of the space.
        try? file.volume.discard(name)
        throw error
      }
      return file
    }
  }

  /// Runs a blocking call on the pool.
  func attempt<Value: Sendable>(
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

// Syncs and records the written bytes.
extension StagingWriter {
  /// Returns true if too many bytes wait to be recorded, so that no more may be received. `resume` is called when they
  /// are recorded.
  func mustWaitForRecord(_ file: StagedFile, then resume: @escaping @Sendable () -> Void) -> Bool {
    guard syncing.isClosed, policy.mustWait(written: file.written.count, now: Clocks.boottime()) else { return false }
    syncing.whenOpen(resume)
    return true
  }

  /// Starts a sync if enough bytes are unsynced, or if the last sync is long enough ago.
  func syncIfDue(now: Int64) {
    policy.interval = root.pace.interval(atLeast: options.syncInterval).nanoseconds
    guard let staged, policy.isDue(unsynced: staged.unsynced, now: now) else { return }
    startSync()
  }

  private func startSync() {
    guard !syncing.isClosed, let staged, let file = staged.file else { return }
    syncing.close()
    root.loop.task { [self] in await sync(staged, file, patience: root.pace.patience(atLeast: options.syncInterval)) }
  }

  /// Bytes have arrived. If no more do, they are recorded at once: a crash during a stall then costs nothing.
  func arrived(now: Int64) {
    policy.arrived(now: now)
    guard stall == nil, let staged, owner?.recordable(generation: staged.generation) != nil else { return }
    watchForStall(now: now)
  }

  private func watchForStall(now: Int64) {
    guard !isClosed, let time = policy.stallsAt else { return }
    // Not before the sync that runs, or the opening of the file, had time to end.
    stall = root.loop.timer(after: .nanoseconds(max(time - now, 50_000_000)), slack: .milliseconds(20)) { [self] in
      stall = nil
      let now = Clocks.boottime()
      guard let time = policy.stallsAt else { return }
      if time <= now { recordStalled(now: now) } else { watchForStall(now: now) }
    }
  }

  private func recordStalled(now: Int64) {
    guard let staged, owner?.recordable(generation: staged.generation) != nil, owner?.standsStill() == true else {
      return
    }
    if syncing.isClosed || staged.opening.isClosed {
      watchForStall(now: now)
    } else if staged.unsynced > 0 {
      startSync()
    }
  }

  /// Syncs the file and then records the bytes that were written before the sync. Only one sync runs at a time.
  private func sync(_ staged: StagedFile, _ file: StagingFile, patience: Duration = .zero) async {
    syncing.close()
    let begun = Clocks.boottime()
    policy.began(now: begun)
    let covered = staged.written
    let step = options.syncBytes
    let tail = await attempt { () throws(StorageError) in
      // A volume that was unmounted can still be written through the open file, but these bytes would be lost.
      try file.volume.check()
      // If the length is unknown, space is reserved as the file grows.
      if staged.size == nil { try file.reserve(covered.end + step, isWritten: true) }
      try file.sync()
      return try TailCheck.crc(of: covered, in: file)
    }
    switch tail {
    case .success(let crc):
      staged.synced(covered)
      await record(covered, tailCRC: crc, of: staged, file, patience: patience)
      if staged === self.staged { policy.recorded(covered.count, since: begun) }
    case .failure(let error):
      if staged === self.staged { owner?.stagingFailed(failure(for: error)) }
    }
    syncing.open()
  }

  private func record(
    _ done: ByteRanges, tailCRC: UInt32?, of staged: StagedFile, _ file: StagingFile, patience: Duration
  ) async {
    guard staged === self.staged, let identity = owner?.recordable(generation: staged.generation) else { return }
    let checkpoint = DownloadCheckpoint(
      generation: staged.generation, identity: identity, volume: file.volume.id,
      stagingName: file.name.description, done: done, tailCRC: tailCRC,
      isUnproven: owner?.isUnproven ?? false)
    do {
      try await ledger.checkpoint(checkpoint, patience: patience)
      staged.recorded = done.count
    } catch {
      owner?.stagingFailed(.unrecorded(error))
    }
  }

  /// Records the written bytes at the end of an incomplete run. If they cannot be resumed, removes the staging file.
  /// But if the file is recorded and the run moved on to a generation without a file, the file stays for the next run:
  /// the source may still have the recorded version.
  ///
  /// - Parameter generation: The generation that would be fetched next.
  func recordRest(generation: Int) async {
    await syncing.opened()
    guard let staged, let file = staged.file else { return }
    guard ledger.mayWrite else { return root.metrics.wasted(staged.unrecorded, .lostLease) }
    if owner?.recordable(generation: staged.generation) != nil {
      if staged.unsynced > 0 { await sync(staged, file) }
    } else if generation == staged.generation || !staged.isRecorded {
      root.metrics.wasted(staged.written.count, .retry)
      return await remove(file)
    }
    // The task may wait for a long time. Until then other tasks may use the space that is reserved for the rest.
    let end = staged.written.end
    _ = await attempt { [ledger] () throws(StorageError) in
      // Another owner may have adopted the file since, and written more.
      if ledger.mayWrite { try file.giveBack(beyond: end) }
    }
  }

  /// Removes the staging file of a run that has ended, because its bytes are not those that the task expects.
  func discard() async {
    await syncing.opened()
    guard let staged, let file = staged.file, ledger.mayWrite else { return }
    root.metrics.wasted(staged.written.count, .retry)
    await remove(file)
  }

  private func remove(_ file: StagingFile) async {
    _ = await attempt { () throws(StorageError) in try file.volume.discard(file.name) }
  }

  /// The run's failure for a storage error. If the disk is full, the task waits for room, unless the task alone fills
  /// the disk.
  func failure(for error: StorageError) -> TaskFailure {
    var failure = error.failure
    if error.code == .diskFull, let staged, staged.size == nil, !staged.written.isEmpty {
      // The bytes of a source of unknown length are not kept. The longest back-off prevents fetching it all again every
      // few seconds.
      failure.retryAfter = RetryPolicy.longestBackoff
      // A task that alone fills the disk would do so each time. So the run counts as an attempt.
      if staged.file?.fillsVolume == true { failure.class = .retry }
    }
    return failure
  }
}
