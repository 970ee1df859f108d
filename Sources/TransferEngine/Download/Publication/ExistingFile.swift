import ReelhaulSystem
import TaskCore

/// The file at a task's destination, to be compared with the task's expectation.
struct ExistingFile: Sendable {
  let volume: Volume
  let destination: StorageURL
  let expect: Expectation
  let read: WholeRead

  /// Succeeds if the file is as expected. Blocks.
  func outcome() throws(StorageError) -> DownloadOutcome {
    let (bytes, mismatch) = try examine()
    guard let mismatch else { return .succeeded(sha256: expect.sha256, bytes: bytes) }
    let message = "\(destination) already exists and is a different file: \(mismatch)"
    return .failed(StorageError(.destinationExists, message).failure)
  }

  /// The file's size, and how it differs from the expected file. Blocks.
  func examine() throws(StorageError) -> (bytes: Int64, mismatch: String?) {
    let file = try volume.open(destination)
    do throws(SystemError) {
      let bytes = try file.size()
      if let expected = expect.bytes, expected != bytes {
        return (bytes, "it has \(bytes) bytes, but \(expected) were expected")
      }
      guard expect.hasDigest else { return (bytes, nil) }
      let digests = try read.digests(of: file, size: bytes, withMD5: expect.md5 != nil)
      return (bytes, DigestMismatch(expect, digests)?.description)
    } catch {
      throw StorageError(error, storage: volume.name)
    }
  }
}
