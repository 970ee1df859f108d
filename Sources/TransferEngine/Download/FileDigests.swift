import Digest
import Glibc
import System

/// The digests of a whole file.
struct FileDigests: Hashable, Sendable {
  var sha256: [UInt8]
  /// `nil` where nobody asked for it.
  var md5: [UInt8]?
}

extension FileDigests {
  /// Reads the file from its start to its end. `goesOn` is asked with every offset that is reached; ECANCELED where it says
  /// no. Blocks.
  init(
    of file: borrowing FileDescriptor, withMD5: Bool, while goesOn: (_ offset: Int64) -> Bool
  ) throws(SystemError) {
    var sha256 = DigestState(.sha256)
    var md5 = DigestState(.md5)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 64)
    defer { buffer.deallocate() }
    var offset: Int64 = 0
    while case let count = try file.read(into: buffer, at: offset), count > 0 {
      let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      sha256.update(bytes)
      if withMD5 { md5.update(bytes) }
      offset += Int64(count)
      guard goesOn(offset) else { throw SystemError(errno: ECANCELED, operation: "read to the end") }
    }
    self.init(sha256: sha256.finish(), md5: withMD5 ? md5.finish() : nil)
  }
}
