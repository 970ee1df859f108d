import ReelhaulCodec
import TaskCore

/// A digest of a file that differs from the expected one.
struct DigestMismatch: Hashable, Sendable {
  private let name: String
  private let expected: [UInt8]
  /// `nil` if it was not computed.
  private let found: [UInt8]?

  /// Returns `nil` if the digests are as expected.
  init?(_ expect: Expectation, _ digests: FileDigests?) {
    let checks = [("SHA-256", expect.sha256, digests?.sha256), ("MD5", expect.md5, digests?.md5)]
    for case (let name, let expected?, let found) in checks where found != expected {
      (self.name, self.expected, self.found) = (name, expected, found)
      return
    }
    return nil
  }
}

extension DigestMismatch: CustomStringConvertible {
  var description: String {
    "the file's \(name) is \(found.map { Hex.encode($0) } ?? "unknown"), but \(Hex.encode(expected)) was expected"
  }
}
