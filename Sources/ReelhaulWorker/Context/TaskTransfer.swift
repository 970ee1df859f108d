import ReelhaulCodec
import ReelhaulSystem
import ReelhaulTasks
import TaskCore
import TaskStore
import TransferEngine
import WorkerCore

/// The fleet's own transfer engine, for use by handlers. Transfers are resumable and verified, and respect the task's
/// rate and the worker's rate, network policy and credentials.
///
/// The bytes on disk are recorded with the run's checkpoint. When another run makes the same call, the transfer
/// continues from there; from another source (but for its query) it begins anew. The calls throw ``TaskError`` with the
/// code with which a download task would fail, `CancellationError` when the run must stop, and ``OwnershipLostError``. Do
/// not catch these errors.
///
/// A task may have 256 transfers that are begun and not done; their records and the checkpoint may have 256 KiB together.
/// Two at once to one name or destination are a mistake of the handler: the second one fails the task.
public struct TaskTransfer: Sendable {
  let run: RunState

  /// A file that a transfer has made.
  public struct File: Hashable, Sendable {
    /// A path in the scratch directory, or a `storage://` URL.
    public var location: String
    public var bytes: Int64
    /// 64 hexadecimal digits.
    public var sha256: String?
  }

  /// The options of a transfer.
  public struct Options: Sendable {
    /// The expected digest and size. A different file is a permanent failure.
    public var expect = Expectation()
    public var ifExists = IfExists.fail
    /// Request header fields; secrets belong in a credential.
    public var headers: [String: String] = [:]
    /// The name of a credential that the workers have.
    public var credential: String?
    /// Called a few times a second with the received bytes and the bytes of the whole file, and at last with all bytes of
    /// a file that is there. On any thread: one call at a time, and none after the transfer has ended.
    public var onProgress: (@Sendable (_ done: Int64, _ total: Int64?) -> Void)?

    public init() {}
  }

  /// Downloads `source`, an `http`, `https` or `s3` URL, to `name` in the run's scratch directory. The name is that of a
  /// file, not a path: at most 255 bytes, without `/` and control characters.
  public func fetch(_ source: String, as name: String, _ options: Options = Options()) async throws -> File {
    _ = try await run.scratchDirectory.path()
    guard let root = run.scratchDirectory.root else { throw Self.withoutStorage }
    try await forget("scratch/\(name)", unlessOn: root)
    let place: StorageURL
    do throws(InvalidStorageURL) {
      place = try StorageURL(root: root.name, scratch: run.scratchDirectory.name.description, file: name)
    } catch {
      throw TaskError.permanent("\"\(name)\" cannot be the name of a file: \(error.reason)")
    }
    // An earlier call of this run may have made the same file.
    var options = options
    options.ifExists = .replace
    let (bytes, sha256) = try await download(source, to: place, named: "scratch/\(name)", options)
    return File(location: try await run.scratchDirectory.path() + "/\(name)", bytes: bytes, sha256: sha256)
  }

  /// Downloads `source`, an `http`, `https` or `s3` URL, to `destination`, a `storage://` URL of a root that this worker
  /// has. The file appears there only when it is complete and verified.
  ///
  /// A file that an earlier run of the task put there is taken as it is, whatever became of that run, and the source is
  /// not asked: use `ifExists` `.replace` for a source that may have changed.
  public func download(
    _ source: String, to destination: String, _ options: Options = Options()
  ) async throws -> File {
    let place = try Self.place(destination)
    let (bytes, sha256) = try await download(source, to: place, named: destination, options)
    return File(location: destination, bytes: bytes, sha256: sha256)
  }

  /// Moves a file of the scratch directory to `destination`, complete and durable. It replaces an existing file only if
  /// `ifExists` says so, or if an earlier run of this task published that file. With ``IfExists/skip`` the file at the
  /// destination stays, and the scratch file is removed.
  public func publish(
    _ path: String, to destination: String, ifExists: IfExists = .fail
  ) async throws -> File {
    let place = try Self.place(destination)
    let scratch = try await run.scratchDirectory.path()
    let parts = path.dropFirst(scratch.count).split(separator: "/")
    guard path.hasPrefix(scratch + "/"), !parts.isEmpty, !parts.contains("..") else {
      throw TaskError.permanent("only a file of the run's scratch directory can be published, not \(path)")
    }
    guard let root = run.scratchDirectory.root, root.name == place.root else {
      throw TaskError.permanent(
        "\(destination) is not on the volume of the scratch directory: name it as the task's destination",
        code: TaskFailure.Code.destinationInvalid.rawValue)
    }
    let id = Self.id(of: destination, in: run)
    let mark = StagingName(task: id, epoch: run.ledger.epoch, generation: 0)
    return try await run.transfer(id, to: destination, ifExists: ifExists) {
      do {
        let bytes = try await root.withVolume { [run] volume in
          guard run.ledger.mayWrite else { throw OwnershipLostError() }
          return try volume.publish(
            parts.joined(separator: "/"), of: run.scratchDirectory.name, to: place, ifExists: ifExists, mark: mark,
            // A pause or a drain does not take back what is as good as done.
            while: { run.ledger.mayWrite && run.ledger.stopReason != .intent(.cancel) })
        }
        return File(location: destination, bytes: bytes, sha256: nil)
      } catch let error as StorageError {
        guard run.ledger.mayWrite else { throw OwnershipLostError() }
        guard run.ledger.stopReason != .intent(.cancel) else { throw CancellationError() }
        throw TaskError(error.failure)
      }
    }
  }

  /// The path of the file at `url`, a `storage://` URL of a root that this worker has, for a program that reads it.
  /// Never write to the file, because others see it. The path is only valid on this worker, so put the URL into a
  /// checkpoint, not the path.
  ///
  /// Throws a ``TaskError``: it waits if this worker lacks the root, and is tried again if there is no file.
  public func path(of url: String) async throws -> String {
    let place = try Self.place(url)
    guard let root = run.roots?[place.root] else { throw Self.withoutStorage }
    do {
      return try await root.withVolume { volume in
        _ = try volume.open(place)
        return "\(volume.path)/\(place.path)"
      }
    } catch let error as StorageError {
      throw TaskError(error.failure)
    }
  }

  /// Forgets a transfer whose bytes are on another volume than `root`: the scratch directory of an earlier run may have been
  /// there, on another worker, and this run's is not.
  private func forget(_ name: String, unlessOn root: StorageRoot) async throws {
    guard let known = run.transfersLeft[name].flatMap({ try? DownloadCheckpoint($0.checkpoint) })
    else { return }
    do {
      guard try await root.withVolume({ $0.id }) != known.volume else { return }
    } catch let error as StorageError {
      throw TaskError(error.failure)
    }
    try await run.checkpoint(nil, ofTransfer: name)
  }

  private func download(
    _ source: String, to place: StorageURL, named name: String, _ options: Options
  ) async throws -> (bytes: Int64, sha256: String?) {
    guard let roots = run.roots else { throw Self.withoutStorage }
    let task = run.ledger.claim.spec
    let spec = TaskSpec(
      id: Self.id(of: name, in: run), kind: .download, source: source, destination: "\(place)",
      expect: options.expect, ifExists: options.ifExists,
      headers: options.headers.sorted { $0.key < $1.key }.map { HeaderField(name: $0.key, value: $0.value) },
      rate: task.rate, connections: task.connections, credential: options.credential ?? task.credential,
      allowUnframed: task.allowUnframed)
    do throws(InvalidTask) {
      try spec.validateTransfer()
    } catch {
      throw TaskError.permanent("the transfer: \(error)", code: TaskFailure.Code.sourceInvalid.rawValue)
    }
    return try await run.transfer(spec.id, from: source, to: name, ifExists: options.ifExists) {
      try await download(spec, to: place, named: name, options, roots)
    }
  }

  private func download(
    _ spec: TaskSpec, to place: StorageURL, named name: String, _ options: Options, _ roots: StorageRoots
  ) async throws -> (bytes: Int64, sha256: String?) {
    let source = Int64(bitPattern: FNV1a(String(spec.source.prefix { $0 != "?" }).utf8).value)
    if let known = run.transfersLeft[name], known.source ?? source != source {
      try? await roots.discard(known.checkpoint, of: [spec.id], preferring: place.root)
      try await run.checkpoint(nil, ofTransfer: name)
    }
    let checkpoint = run.transfersLeft[name].flatMap { try? DownloadCheckpoint($0.checkpoint) }
    if checkpoint == nil, spec.ifExists == .fail, let file = try await published(spec, at: place, roots) {
      options.onProgress?(file.bytes, file.bytes)
      return file
    }
    let ledger = HandlerTransferLedger(run: run, name: name, source: source, onProgress: options.onProgress)
    let outcome = await DownloadEngine(roots: roots).run(spec, to: place, from: checkpoint, ledger: ledger)
    // The last bytes need not have been told.
    if case .succeeded(_, let bytes, _) = outcome { ledger.progress(bytesDone: bytes, bytesTotal: bytes) }
    await ledger.close()
    switch outcome {
    case .succeeded(let sha256, let bytes, _):
      if run.transfersLeft[name] != nil { try await run.checkpoint(nil, ofTransfer: name) }
      return (bytes, sha256.map { Hex.encode($0) })
    case .failed(let failure): throw ledger.lost ? OwnershipLostError() : TaskError(failure)
    case .stopped:
      if run.ledger.isLost { throw OwnershipLostError() }
      throw CancellationError()
    }
  }

  /// The file that an earlier run has downloaded, and ended before the handler could record it.
  private func published(
    _ spec: TaskSpec, at place: StorageURL, _ roots: StorageRoots
  ) async throws -> (bytes: Int64, sha256: String?)? {
    guard let root = roots[place.root] else { return nil }
    do {
      return try await root.readWhole(pulse: run.ledger.pulse) { [run] in
        let file = try root.storage.volume(place.root).published(at: place, by: spec.id, expect: spec.expect) {
          run.ledger.pulse()
          return run.ledger.stopReason == nil
        }
        return file.map { ($0.bytes, Hex.encode($0.sha256)) }
      }
    } catch let error as StorageError {
      if run.ledger.isLost { throw OwnershipLostError() }
      if run.ledger.stopReason != nil { throw CancellationError() }
      throw TaskError(error.failure)
    }
  }

  /// The id in the names of a transfer's staging files. It is the same in every run of the task.
  static func id(of name: String, in run: RunState) -> UniqueID { id(of: name, task: run.ledger.claim.spec.id) }

  static func id(of name: String, task: UniqueID) -> UniqueID {
    task.derived(by: FNV1a(name.utf8).value)
  }

  static func place(_ url: String) throws -> StorageURL {
    do throws(InvalidStorageURL) {
      return try StorageURL(url)
    } catch {
      throw TaskError.permanent("\(url): \(error.reason)", code: TaskFailure.Code.destinationInvalid.rawValue)
    }
  }

  static let withoutStorage = TaskError.wait(
    "this worker has no storage to transfer to", for: .seconds(60), code: TaskFailure.Code.storageUnknown.rawValue)
}

extension TaskError {
  init(_ failure: TaskFailure) {
    let meaning: Meaning =
      switch failure.class {
      case .fail: .permanent
      case .retry: .retry(after: failure.retryAfter.map { .seconds($0) })
      case .wait: .wait(.seconds(failure.retryAfter ?? 0))
      }
    self.init(code: failure.code.rawValue, message: failure.message, meaning: meaning)
  }
}

/// Records the checkpoints of a transfer with those of its run.
private final class HandlerTransferLedger: DownloadLedger {
  private let run: RunState
  private let name: String
  private let source: Int64
  /// The latest progress, if the handler wants it. Its closure may block, so it is called on another thread than that of
  /// the storage, where all transfers of the storage tell of theirs.
  private let progress: AsyncStream<(done: Int64, total: Int64?)>.Continuation
  private let telling: Task<Void, Never>?

  init(run: RunState, name: String, source: Int64, onProgress: (@Sendable (Int64, Int64?) -> Void)?) {
    self.run = run
    self.name = name
    self.source = source
    let (latest, progress) = AsyncStream.makeStream(
      of: (done: Int64, total: Int64?).self, bufferingPolicy: .bufferingNewest(1))
    self.progress = progress
    telling = onProgress.map { tell in Task { for await (done, total) in latest { tell(done, total) } } }
  }

  /// Returns once the handler's closure has returned for the last time.
  func close() async {
    progress.finish()
    await telling?.value
  }

  func checkpoint(_ checkpoint: DownloadCheckpoint, patience: Duration) async throws {
    do {
      try await run.checkpoint(.init(checkpoint: checkpoint.envelope, source: source), ofTransfer: name)
    } catch let error as TaskError {
      // It says what becomes of the task.
      throw TaskFailure(error)
    }
  }

  func progress(bytesDone: Int64, bytesTotal: Int64?) {
    run.ledger.pulse()
    progress.yield((bytesDone, bytesTotal))
  }

  func pulse() { run.ledger.pulse() }

  var epoch: Int { run.ledger.epoch }
  var mayWrite: Bool { run.ledger.mayWrite }
  var lost: Bool { run.ledger.isLost }
}
