import ReelhaulCurl
import ReelhaulSystem
import TaskCore

/// One run of a download, from the check of the task to its outcome. It begins where earlier runs stopped.
struct DownloadRun: Sendable {
  let spec: TaskSpec
  let destination: StorageURL
  let checkpoint: DownloadCheckpoint?
  let ledger: any DownloadLedger
  let context: DownloadContext

  /// What the files on disk mean for this run.
  enum Ground: Sendable {
    case ended(DownloadOutcome)
    /// Fetch, and continue the staging file if it was found again.
    case fetch(StagingFile?)
  }

  func run() async -> DownloadOutcome {
    if case .s3(let object)? = try? ResourceURL(spec.source) { return await run(object) }
    guard let source = CurlURL(spec.source), source.scheme == "http" || source.scheme == "https",
      !source.hasCredentials
    else {
      let message = "the source must be an http, https or s3 URL without credentials"
      return .failed(TaskFailure(code: .sourceInvalid, message: message, class: .fail))
    }
    do throws(TaskFailure) {
      return await run(source, credential: try await context.root.fields(of: spec.credential, for: source))
    } catch {
      return Task.isCancelled ? .stopped : .failed(error)
    }
  }

  /// A store may tell with its first answer that the bucket is in another region: then it is asked there.
  private func run(_ object: S3URL) async -> DownloadOutcome {
    let client = S3Client(
      bucket: object.bucket, root: context.root, credential: spec.credential, pulse: ledger.pulse)
    do {
      var source = try await S3Object(object, client: client)
      var hasMoved = false
      while true {
        let outcome = await run(source.url, s3: source)
        guard case .failed(var failure) = outcome, S3Object.leavesOpen(failure), ledger.mayWrite else { return outcome }
        // Then the next run asks.
        guard !Task.isCancelled else { return .stopped }
        let explained = try await context.root.loop.run { [spec, source, failure] in
          await source.explained(failure, spec.headers)
        }
        if let explained { return Task.isCancelled ? .stopped : .failed(explained) }
        guard !hasMoved else {
          failure.class = .retry
          return .failed(failure)
        }
        hasMoved = true
        source = try await source.moved()
      }
    } catch let failure as TaskFailure {
      return Task.isCancelled ? .stopped : .failed(failure)
    } catch {
      return .stopped
    }
  }

  private func run(_ source: CurlURL, credential: [HeaderField] = [], s3: S3Object? = nil) async -> DownloadOutcome {
    let file: StagingFile?
    switch await survey() {
    case .ended(let outcome): return outcome
    case .fetch(let found): file = found
    }
    let download = Download(
      spec, source: source, credential: credential, s3: s3, destination: destination, checkpoint: checkpoint,
      file: file,
      ledger: ledger, context: context)
    return await context.root.loop.run(download.fetch, stop: download.stop)
  }

  /// Finishes what an earlier run began to publish, and looks at the destination and the staging file.
  func survey() async -> Ground {
    let (glance, read) = (WholeRead(ledger, isAllowed: false), WholeRead(ledger))
    do {
      return try await withTaskCancellationHandler {
        let ground = try await context.root.files.run { look(glance) }
        guard glance.wasRefused else { return ground }
        return try await context.root.readWhole(pulse: ledger.pulse) { look(read) }
      } onCancel: {
        read.stop()
      }
    } catch {
      return .ended(.stopped)
    }
  }

  /// Blocks.
  private func look(_ read: WholeRead) -> Ground {
    // This call may have waited a long time for a thread.
    guard ledger.mayWrite else { return .ended(.stopped) }
    do throws(StorageError) {
      if let checkpoint, let publishing = checkpoint.publishing {
        let recovery = PublishRecovery(
          storage: context.root.storage, spec: spec, destination: destination, checkpoint: checkpoint,
          publishing: publishing, read: read)
        if let outcome = try recovery.run() { return .ended(outcome) }
      }
      if let outcome = try occupied(read) { return .ended(outcome) }
      return .fetch(checkpoint?.publishing == nil ? try adopt() : nil)
    } catch {
      return .ended(read.isWanted ? .failed(error.failure) : .stopped)
    }
  }

  /// Decides what an existing destination means; `nil` if the download is to go on.
  private func occupied(_ read: WholeRead) throws(StorageError) -> DownloadOutcome? {
    let volume = try context.root.storage.volume(destination.root)
    try volume.check()
    try volume.checkParent(of: destination)
    let isThere = try volume.hasFile(at: destination, orLink: spec.ifExists == .replace)
    guard isThere, spec.ifExists != .replace else { return nil }
    guard spec.ifExists == .skip else {
      // The end of an earlier run was not recorded, because the task was canceled meanwhile.
      if try volume.isPublished(at: destination, by: spec.id) { return nil }
      throw StorageError(.destinationExists, "\(destination) already exists")
    }
    return try ExistingFile(volume: volume, destination: destination, expect: spec.expect, read: read).outcome()
  }

  /// The staging file that the checkpoint names, if its last recorded bytes are still the same.
  private func adopt() throws(StorageError) -> StagingFile? {
    guard let checkpoint else { return nil }
    do throws(StorageError) {
      let file = try context.root.storage.adopt(for: destination, task: spec.id, checkpoint: checkpoint)
      guard try TailCheck.crc(of: checkpoint.done, in: file) == checkpoint.tailCRC else { return nil }
      do throws(StorageError) {
        if let size = checkpoint.identity.size { try file.reserve(size) }
      } catch {
        // It may have got a part of the space.
        if ledger.mayWrite { try? file.giveBack(beyond: checkpoint.done.end) }
        throw error
      }
      return file
    } catch {
      if error.isVoid { return nil }
      throw error
    }
  }
}
