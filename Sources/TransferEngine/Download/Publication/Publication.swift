import ReelhaulSystem
import TaskCore

/// Brings one staging file, in which all bytes are written, to its destination.
///
/// Bytes on stable storage → digests → `publishing` recorded → renamed → directory on stable storage. After a crash
/// between any two of these steps, ``PublishRecovery`` finishes the rest.
// @unchecked: used only on the root's loop.
final class Publication: @unchecked Sendable {
  enum Result {
    case ended(DownloadOutcome)
    /// The file must be fetched again.
    case digestMismatch(DigestMismatch)
    /// The run is to stop, or has lost the task.
    case interrupted
    case failed(TaskFailure)
  }

  private let root: StorageRoot
  private let file: StagingFile
  private let destination: StorageURL
  private let ifExists: IfExists
  private let expect: Expectation
  private let verification: Verification?
  private let ledger: any TransferLedger
  /// Of the file that is at the destination already.
  private let existing: WholeRead
  private var isStopping = false
  /// The file is whole and verified, and may be recorded as being published. From now on this run must leave the file
  /// and its checkpoint to the next run.
  private(set) var isVerified = false

  init(
    of file: StagingFile, to destination: StorageURL, ifExists: IfExists, expect: Expectation,
    verification: Verification?, root: StorageRoot, ledger: any TransferLedger
  ) {
    self.file = file
    self.destination = destination
    self.ifExists = ifExists
    self.expect = expect
    self.verification = verification
    self.root = root
    self.ledger = ledger
    existing = WholeRead(ledger)
  }

  /// Stops at the next step that another run can continue, or runs to the end.
  func stop() {
    isStopping = true
    existing.stop()
  }

  /// - Parameters:
  ///   - bytes: The size of the whole file.
  ///   - isReserved: The file may be longer than `bytes`.
  ///   - fetched: The SHA-256 of a second body, which the file must have too.
  ///   - follower: It has hashed some of the file's bytes; `nil` if hashing is off.
  ///   - record: Records that the file is being published, and returns once the store has committed this.
  func run(
    bytes: Int64, isReserved: Bool, fetched: [UInt8]?, follower: DigestFollower?,
    record: (_ sha256: [UInt8]?) async throws -> Void
  ) async -> Result {
    do {
      let digests = try await verify(bytes: bytes, isReserved: isReserved, follower)
      guard ledger.mayWrite else { return .interrupted }
      let expect = fetched.map { Expectation(sha256: $0) } ?? expect
      if let mismatch = DigestMismatch(expect, digests) { return .digestMismatch(mismatch) }
      if isStopping { return .interrupted }
      // Set before recording: if the commit reports an error, it may still have been made.
      isVerified = true
      try await record(digests?.sha256)
      guard ledger.mayWrite else { return .interrupted }
      return try await publish(bytes: bytes, sha256: digests?.sha256)
    } catch let error as StorageError {
      return existing.isWanted ? .failed(error.failure) : .interrupted
    } catch is CancellationError {
      return .interrupted
    } catch {
      return .failed(.unrecorded(error))
    }
  }

  /// Syncs the file and returns the digests of all its bytes; `nil` if hashing is off. This takes minutes for a large
  /// file. Throws `CancellationError` if the run is to end before.
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
      // This call may have waited a long time for a thread.
      ledger.mayWrite ? try file.volume.publish(file, to: destination, ifExists: ifExists) : nil
    }
    switch published {
    case nil: return .interrupted
    case .published: return .ended(.succeeded(sha256: sha256, bytes: bytes, verification))
    case .skipped:
      let found = ExistingFile(volume: file.volume, destination: destination, expect: expect, read: existing)
      return .ended(try await root.readWhole(pulse: ledger.pulse) { try found.outcome() })
    }
  }
}
