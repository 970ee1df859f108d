import Glibc
import ReelhaulDigest
import ReelhaulSystem

/// The digests of a whole file.
struct FileDigests: Hashable, Sendable {
  var sha256: [UInt8]
  /// `nil` if it was not requested.
  var md5: [UInt8]?
}

extension FileDigests {
  /// Reads the file from its start to its end. Lets `see` have the bytes, calls `goesOn` with every offset that it
  /// reaches, and throws ECANCELED if that returns false. Blocks.
  init(
    of file: borrowing FileDescriptor, withMD5: Bool, seeing see: (UnsafeRawBufferPointer) -> Void = { _ in },
    while goesOn: (_ offset: Int64) -> Bool
  ) throws(SystemError) {
    var hasher = FileHasher(withMD5: withMD5)
    _ = try hasher.read(file, 0..<Int64.max, seeing: see, while: goesOn)
    self = hasher.finish()
  }
}

/// Computes the digests of a file that is still growing. The bytes are read in order.
struct FileHasher: ~Copyable {
  private var sha256 = DigestState(.sha256)
  private var md5 = DigestState(.md5)
  private let withMD5: Bool

  init(withMD5: Bool) {
    self.withMD5 = withMD5
  }

  /// Reads `range`, or up to the file's end, and returns the offset that it reached. Lets `see` have the bytes, calls
  /// `goesOn` with every offset that it reaches, and throws ECANCELED if that returns false. Blocks.
  mutating func read(
    _ file: borrowing FileDescriptor, _ range: Range<Int64>, seeing see: (UnsafeRawBufferPointer) -> Void = { _ in },
    while goesOn: (_ offset: Int64) -> Bool = { _ in true }
  ) throws(SystemError) -> Int64 {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(min(Int64(range.count), 1 << 20)), alignment: 64)
    defer { buffer.deallocate() }
    var offset = range.lowerBound
    while offset < range.upperBound {
      let wanted = min(buffer.count, Int(range.upperBound - offset))
      let count = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: offset)
      guard count > 0 else { break }
      let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      sha256.update(bytes)
      if withMD5 { md5.update(bytes) }
      see(bytes)
      offset += Int64(count)
      guard goesOn(offset) else { throw SystemError(errno: ECANCELED, operation: "read to the end") }
    }
    return offset
  }

  mutating func finish() -> FileDigests {
    FileDigests(sha256: sha256.finish(), md5: withMD5 ? md5.finish() : nil)
  }
}
