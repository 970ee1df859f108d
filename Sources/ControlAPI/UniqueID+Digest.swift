import ReelhaulDigest
import TaskCore

extension UniqueID {
  /// A version 8 UUID that follows from a text: the same text gives the same id.
  package init(derivedFrom text: String) {
    self.init(derivedFrom: Array(text.utf8))
  }

  package init(derivedFrom bytes: [UInt8]) {
    let bytes = digest(.sha256, of: bytes)
    let (high, low) = (
      bytes.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) },
      bytes[8..<16].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    )
    self.init(version8: high, low)
  }
}
