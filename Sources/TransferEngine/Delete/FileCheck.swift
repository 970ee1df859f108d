import ReelhaulSystem
import TaskCore

/// The result of comparing a file on a volume with the expected digests.
package enum FileCheck: Hashable, Sendable {
  case same
  /// The difference, for people.
  case differs(String)
  case stopped

  /// Reads the whole file. Blocks.
  package static func mismatch(
    of url: StorageURL, on volume: Volume, expect: Expectation, while goesOn: () -> Bool
  ) throws(StorageError) -> FileCheck {
    let file = try volume.open(url)
    do throws(SystemError) {
      let digests = try FileDigests(of: file, withMD5: expect.md5 != nil) { _ in goesOn() }
      return DigestMismatch(expect, digests).map { .differs($0.description) } ?? .same
    } catch {
      guard goesOn() else { return .stopped }
      throw StorageError(error, storage: volume.name)
    }
  }
}
