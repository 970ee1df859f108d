import ReelhaulSystem
import TaskCore

/// The way of one staging file from "all bytes are written" to its destination.
///
/// Bytes on stable storage → digests → `publishing` recorded → renamed → directory on stable storage. What a crash
/// between any two of them leaves is ``PublishRecovery``'s.
// @unchecked: touched on the loop of the root alone.
final class Publication: @unchecked Sendable {
  enum Result {
    case ended(DownloadOutcome)
    /// To be fetched anew.
    case digestMismatch(DigestMismatch)
    /// Told to stop before anything was published.
    case interrupted
    case failed(TaskFailure)
  }

  private let root: StorageRoot
  private let file: StagingFile
  private let destination: StorageURL
  private let ifExists: IfExists
  private let expect: Expectation
  private let ledger: any TransferLedger
  private var isStopping = false
  /// The file is whole and verified, and may be recorded as being published: it is the next run's, whatever becomes of
  /// this one.
  private(set) var isVerified = false

  init(
    of file: StagingFile, to destination: StorageURL, ifExists: IfExists, expect: Expectation, root: StorageRoot,
    ledger: any TransferLedger
  ) {
    self.file = file
    self.destination = destination
    self.ifExists = ifExists
    self.expect = expect
    self.root = root
    self.ledger = ledger
  }

  /// Told to stop, it goes on to the next step that can wait, or to its end.
  func stop() {
    isStopping = true
  }

  /// - Parameters:
  ///   - bytes: the whole file's.
  ///   - isReserved: the file is longer than `bytes`, or may be.
  ///   - follower: has hashed some of the file's bytes; `nil` where nothing is hashed.
  ///   - record: records that the file is being published; returns once the store has committed it.
  func run(
    bytes: Int64, isReserved: Bool, follower: DigestFollower?, record: (_ sha256: [UInt8]?) async throws -> Void
  ) async -> Result {
    do {
      let digests = try await verify(bytes: bytes, isReserved: isReserved, follower)
      guard ledger.mayWrite else { return .interrupted }
      if let mismatch = DigestMismatch(expect, digests) { return .digestMismatch(mismatch) }
      if isStopping { return .interrupted }
      // Before it is recorded: whether a commit that fails was made is not known.
      isVerified = true
      try await record(digests?.sha256)
      guard ledger.mayWrite else { return .interrupted }
      return try await publish(bytes: bytes, sha256: digests?.sha256)
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
  private func verify(bytes: Int64, isReserved: Bool, _ follower: DigestFollower?) async throws -> FileDigests? {
    if isReserved { try await root.files.run { [file] in try file.truncate(to: bytes) } }
    guard let follower else {
      try await root.files.run { [file] in try file.sync() }
      return nil
    }
    return try await follower.finish(size: bytes) { [self] in
      ledger.pulse()
      return !isStopping && ledger.mayWrite
    }
  }

  private func publish(bytes: Int64, sha256: [UInt8]?) async throws -> Result {
    let (file, destination, ifExists, ledger) = (file, destination, ifExists, ledger)
    let published = try await root.files.run {
      // It may have waited for a thread for long.
      ledger.mayWrite ? try file.volume.publish(file, to: destination, ifExists: ifExists) : nil
    }
    switch published {
    case nil: return .interrupted
    case .published: return .ended(.succeeded(sha256: sha256, bytes: bytes))
    case .skipped:
      let existing = ExistingFile(
        volume: file.volume, destination: destination, expect: expect, read: WholeRead(ledger))
      return .ended(try await root.readWhole(pulse: ledger.pulse) { try existing.outcome() })
    }
  }
}
