import System
import TaskCore

/// The file at the destination of a task that leaves what is there.
struct ExistingFile: Sendable {
  let volume: Volume
  let destination: StorageURL
  let expect: Expectation
  let read: WholeRead

  /// Success where it is what the task expects. Blocks.
  func outcome() throws(StorageError) -> DownloadOutcome {
    let file = try volume.open(destination)
    do throws(SystemError) {
      let bytes = try file.size()
      guard let reason = try mismatch(file, bytes: bytes) else {
        return .succeeded(sha256: expect.sha256, bytes: bytes)
      }
      let message = "\(destination) exists already, and is another file: \(reason)"
      return .failed(StorageError(.destinationExists, message).failure)
    } catch {
      throw StorageError(error, storage: volume.name)
    }
  }

  /// Why a file is not the expected one.
  private func mismatch(_ file: borrowing FileDescriptor, bytes: Int64) throws(SystemError) -> String? {
    if let expected = expect.bytes, expected != bytes { return "it has \(bytes) bytes, expected were \(expected)" }
    guard expect.sha256 != nil || expect.md5 != nil else { return nil }
    return DigestMismatch(expect, try read.digests(of: file, size: bytes, withMD5: expect.md5 != nil))?.description
  }
}
