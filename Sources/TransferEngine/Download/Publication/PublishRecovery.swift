import ReelhaulSystem
import TaskCore

/// Finishes a publication that a run recorded as `publishing` before it died. If the staging file is gone, the rename
/// may have happened: the file at the destination shows this.
struct PublishRecovery: Sendable {
  let storage: Storage
  let spec: TaskSpec
  let destination: StorageURL
  let checkpoint: DownloadCheckpoint
  let publishing: DownloadCheckpoint.Publishing
  let read: WholeRead

  /// Returns `nil` if the verified file is gone, so that it must be fetched again. Blocks.
  func run() throws(StorageError) -> DownloadOutcome? {
    do throws(StorageError) {
      guard let file = try adopted() else { return try published() }
      let isRecorded = try isRecordedFile(file)
      guard read.isWanted else { return .stopped }
      guard isRecorded else {
        try file.volume.discard(file.name)
        return nil
      }
      switch try file.volume.publish(file, to: destination, ifExists: spec.ifExists) {
      case .published: return .succeeded(sha256: sha256, bytes: size, publishing.verification)
      case .skipped:
        return try existing(on: file.volume, expecting: spec.expect).outcome()
      }
    } catch {
      guard error.isVoid else { throw error }
      // The rename may have been done all the same: by an owner of before, or by a server whose answer was lost.
      return try published()
    }
  }

  private func published() throws(StorageError) -> DownloadOutcome? {
    guard try destinationIsRecordedFile() else { return nil }
    try storage.volume(destination.root).syncName(of: destination)
    return .succeeded(sha256: sha256, bytes: size, publishing.verification)
  }

  private var size: Int64 { checkpoint.done.count }

  /// `nil` where the bytes were not hashed.
  private var sha256: [UInt8]? { publishing.sha256.isEmpty ? nil : publishing.sha256 }

  private func adopted() throws(StorageError) -> StagingFile? {
    do throws(StorageError) {
      return try storage.adopt(for: destination, task: spec.id, checkpoint: checkpoint)
    } catch {
      if error.isVoid { return nil }
      throw error
    }
  }

  /// Whether the staging file still has the recorded digest.
  private func isRecordedFile(_ file: StagingFile) throws(StorageError) -> Bool {
    guard let sha256 else { return true }
    return try file.attempt { file throws(SystemError) in try read.digests(of: file, size: size).sha256 } == sha256
  }

  /// Whether the rename had happened. The mark on the file shows this, or else its size and digest.
  private func destinationIsRecordedFile() throws(StorageError) -> Bool {
    guard let name = StagingName(checkpoint.stagingName) else { return false }
    let volume = try storage.volume(destination.root)
    let occupant: Occupant
    do throws(StorageError) {
      occupant = try volume.occupant(of: destination, name: name)
    } catch  where error.code == .destinationInvalid {
      // Not a file. A link may be replaced, as before a first try.
      return false
    }
    switch occupant {
    case .nothing: return false
    case .own: return true
    case .other, .unknown:
      guard let sha256 else { return false }
      return try existing(on: volume, expecting: Expectation(sha256: sha256, bytes: size)).examine().mismatch == nil
    }
  }

  private func existing(on volume: Volume, expecting expect: Expectation) -> ExistingFile {
    ExistingFile(volume: volume, destination: destination, expect: expect, read: read)
  }
}
