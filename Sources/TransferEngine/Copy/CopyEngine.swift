import ReelhaulSystem
import TaskCore

/// Copies files from one storage root to another, many at a time. What a copy records, leaves and publishes is as of a
/// download: a ``DownloadCheckpoint`` and a staging file.
package struct CopyEngine: Sendable {
  private let roots: StorageRoots

  package init(roots: StorageRoots) {
    self.roots = roots
  }

  /// Runs one attempt of `spec`, and continues from `checkpoint`, which earlier runs recorded. Cancel the Swift task to
  /// stop it: it then records the copied bytes.
  package func run(
    _ spec: TaskSpec, from checkpoint: DownloadCheckpoint?, ledger: any DownloadLedger
  ) async -> DownloadOutcome {
    let (source, destination): (StorageURL, StorageURL)
    do throws(InvalidStorageURL) {
      source = try StorageURL(spec.source)
      destination = try StorageURL(spec.destination ?? "")
    } catch {
      return .failed(TaskFailure(code: .destinationInvalid, message: "source or destination: \(error)", class: .fail))
    }
    guard let from = roots[source.root] else { return .failed(StorageError.unknownRoot(source.root).failure) }
    guard let root = roots[destination.root] else { return .failed(StorageError.unknownRoot(destination.root).failure) }
    let context = DownloadContext(root: root, options: DownloadOptions())
    let found: StagingFile?
    switch await DownloadRun(
      spec: spec, destination: destination, checkpoint: checkpoint, ledger: ledger, context: context
    ).survey() {
    case .ended(let outcome): return outcome
    case .fetch(let file): found = file
    }
    let run = CopyRun(
      spec, from: from, source: source, to: root, destination: destination, checkpoint: checkpoint, found: found,
      ledger: ledger)
    return await root.loop.run(run.run, stop: run.stop)
  }
}

/// One run of a copy between storages.
// @unchecked: used only on the loop of the destination's root.
private final class CopyRun: @unchecked Sendable {
  private let spec: TaskSpec
  private let origin: StorageRoot
  private let source: StorageURL
  private let root: StorageRoot
  private let destination: StorageURL
  private let ledger: any DownloadLedger
  private let options = DownloadOptions()
  private var bucket: TokenBucket?
  private let share: RateShare
  /// The run, while it waits for the common limit.
  private var waiter: UnsafeContinuation<Void, Never>?
  private var generation: Int
  /// The staging file, what of it is copied, and of which version.
  private var file: StagingFile?
  private var identity: UploadIdentity?
  private var done: Int64 = 0
  private var recorded: (bytes: Int64, at: BootInstant)
  private var follower: DigestFollower?
  private var publication: Publication?
  private var isStopping = false

  /// The most bytes of one call.
  private static let portion: Int64 = 8 << 20

  init(
    _ spec: TaskSpec, from origin: StorageRoot, source: StorageURL, to root: StorageRoot, destination: StorageURL,
    checkpoint: DownloadCheckpoint?, found: StagingFile?, ledger: any DownloadLedger
  ) {
    self.spec = spec
    self.origin = origin
    self.source = source
    self.root = root
    self.destination = destination
    self.ledger = ledger
    bucket = spec.rate.map { TokenBucket(rate: $0, now: Clocks.boottime()) }
    share = RateShare(of: root.limiter, loop: root.loop)
    generation = checkpoint.map { found == nil ? $0.generation + 1 : $0.generation } ?? 0
    recorded = (0, .now)
    guard let found, let checkpoint, let version = checkpoint.identity.etag else { return }
    file = found
    identity = UploadIdentity(size: checkpoint.identity.size ?? 0, version: version)
    done = checkpoint.done.prefixEnd
    recorded.bytes = done
  }

  func stop() {
    isStopping = true
    publication?.stop()
    waiter.take()?.resume()
  }

  func run() async -> DownloadOutcome {
    let pulse = root.loop.repeating(every: .seconds(10), ledger.pulse)
    root.metrics.begun(.storage)
    defer {
      root.metrics.ended(.storage)
      pulse.cancel()
      follower?.close()
      share.close()
    }
    share.onGrant = { [unowned self] in waiter.take()?.resume() }
    do {
      for _ in 0..<options.limits.generations {
        do {
          return try await attempt()
        } catch is UploadSourceChanged {
          try await discard()
        }
      }
      throw TaskFailure(code: .sourceChanging, message: "the source keeps changing while it is copied", class: .retry)
    } catch let failure as TaskFailure {
      return await ended(.failed(failure))
    } catch let error as StorageError {
      return await ended(.failed(error.failure))
    } catch is CancellationError {
      return await ended(.stopped)
    } catch {
      return await ended(.failed(.unrecorded(error)))
    }
  }

  private func attempt() async throws -> DownloadOutcome {
    try checkOwner()
    let source = try await StorageSource.open(source, in: origin)
    if let difference = source.identity.mismatch(Expectation(bytes: spec.expect.bytes)) {
      throw TaskFailure(code: .sizeMismatch, message: "\(self.source) is not copied: \(difference)", class: .fail)
    }
    if identity != source.identity {
      if file != nil { try await discard() }
      identity = source.identity
    }
    let file: StagingFile
    if let found = self.file { file = found } else { file = try await create(for: source) }
    self.file = file
    let size = source.identity.size
    let follower = DigestFollower(
      file: file, withMD5: spec.expect.md5 != nil, digests: root.digests, files: root.files, loop: root.loop)
    self.follower = follower
    while done < size {
      let range = done..<min(size, done + portion)
      try await waitForRate()
      try await takeShare(of: range.count)
      try await onFiles { [ledger] in try source.copy(range, to: file) { ledger.mayWrite } }
      bucket?.take(range.count, now: Clocks.boottime())
      root.metrics.moved(range.count, .copy, .storage)
      done = range.upperBound
      ledger.progress(bytesDone: done, bytesTotal: size)
      follower.follow(done)
      if done - recorded.bytes >= options.syncBytes || recorded.at + options.syncInterval <= .now { try await record() }
    }
    try await source.check()
    return try await publish(file, follower)
  }

  /// A new staging file, with all bytes in it already where the file system can share them.
  private func create(for source: StorageSource) async throws -> StagingFile {
    let name = StagingName(task: spec.id, epoch: ledger.epoch, generation: generation)
    let (storage, destination) = (root.storage, destination)
    let (file, isCloned) = try await onFiles {
      let file = try storage.create(for: destination, name: name)
      do {
        let isCloned = try source.clone(to: file)
        if !isCloned { try file.reserve(source.identity.size) }
        return (file, isCloned)
      } catch {
        try? file.volume.discard(name)
        throw error
      }
    }
    done = isCloned ? source.identity.size : 0
    recorded = (0, .now)
    return file
  }

  private func publish(_ file: StagingFile, _ follower: DigestFollower) async throws -> DownloadOutcome {
    try checkOwner()
    let publication = Publication(
      of: file, to: destination, ifExists: spec.ifExists, expect: spec.expect, verification: nil, root: root,
      ledger: ledger)
    self.publication = publication
    var checkpoint = checkpoint(file)
    let result = await publication.run(bytes: done, isReserved: false, fetched: nil, follower: follower) { sha256 in
      checkpoint.publishing = .init(sha256: sha256 ?? [])
      try await ledger.checkpoint(checkpoint)
    }
    switch result {
    case .ended(let outcome): return outcome
    case .failed(let failure): throw failure
    case .interrupted: throw CancellationError()
    case .digestMismatch(let mismatch):
      try await discard()
      throw TaskFailure(code: .digestMismatch, message: "\(source) is not copied: \(mismatch)", class: .fail)
    }
  }

  /// Syncs what is copied, and then records it.
  private func record() async throws {
    guard let file else { return }
    var checkpoint = checkpoint(file)
    checkpoint.tailCRC = try await onFiles { [done = checkpoint.done] in
      try file.volume.check()
      try file.sync()
      return try TailCheck.crc(of: done, in: file)
    }
    do {
      try await ledger.checkpoint(checkpoint)
    } catch {
      throw TaskFailure.unrecorded(error)
    }
    recorded = (done, .now)
  }

  private func checkpoint(_ file: StagingFile) -> DownloadCheckpoint {
    var ranges = ByteRanges()
    if done > 0 { ranges.insert(0..<done) }
    return DownloadCheckpoint(
      generation: generation,
      identity: SourceIdentity(finalURL: "\(source)", size: identity?.size, etag: identity?.version),
      volume: file.volume.id, stagingName: file.name.description, done: ranges)
  }

  /// The next run continues with what is copied.
  private func ended(_ outcome: DownloadOutcome) async -> DownloadOutcome {
    guard ledger.mayWrite else { return .stopped }
    if let file, publication?.isVerified != true {
      if done > recorded.bytes { try? await record() }
      // Other tasks may use the space of the rest meanwhile.
      let kept = recorded.bytes
      _ = try? await onFiles { kept > 0 ? try file.giveBack(beyond: kept) : try file.volume.discard(file.name) }
    }
    return outcome
  }

  /// The source is another version now, or not what is expected.
  private func discard() async throws {
    follower?.close()
    follower = nil
    generation += 1
    done = 0
    guard let file else { return }
    self.file = nil
    try await onFiles { try file.volume.discard(file.name) }
  }

  // MARK: Waiting

  private func checkOwner() throws {
    guard !isStopping, ledger.mayWrite else { throw CancellationError() }
  }

  private var portion: Int64 {
    let own = bucket.map { min(Self.portion, max(64 << 10, $0.burst)) } ?? Self.portion
    return min(own, root.limiter.map { Int64($0.portion) } ?? own)
  }

  private func waitForRate() async throws {
    while let wait = bucket?.wait(now: Clocks.boottime()), wait > 0 {
      try checkOwner()
      try await root.loop.sleep(for: .nanoseconds(min(wait, 100_000_000)))
    }
  }

  /// Waits until the common limit lets so many bytes pass, which must not be more than a portion.
  private func takeShare(of count: Int) async throws {
    while !share.take(count) {
      try checkOwner()
      // Before it is kept, a stop may have come.
      await withUnsafeContinuation { if isStopping { $0.resume() } else { waiter = $0 } }
    }
    try checkOwner()
  }

  /// Runs a call that may read much of a disk. It may have waited a long time for its thread.
  private func onFiles<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    let (ledger, name) = (ledger, origin.name)
    return try await root.copy(from: origin) {
      guard ledger.mayWrite else { throw CancellationError() }
      do {
        return try body()
      } catch let error as SystemError {
        throw StorageError(error, storage: name)
      }
    }
  }
}
