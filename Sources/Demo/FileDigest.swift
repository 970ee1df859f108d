import Glibc
import ReelhaulDigest
import ReelhaulSystem

/// Computes digests of whole files, outside the cooperative thread pool.
struct FileDigest {
  struct Value: Sendable {
    var size: Int64
    var sha256: [UInt8]
  }

  /// Returns nil if the file does not exist.
  static func of(_ path: String, on pool: BlockingPool) async throws -> Value? {
    try await pool.run {
      guard access(path, F_OK) == 0 else { return nil }
      let file = try FileDescriptor.open(path, O_RDONLY)
      var state = DigestState(.sha256)
      var buffer = [UInt8](repeating: 0, count: 1 << 20)
      var offset: Int64 = 0
      while true {
        let count = try buffer.withUnsafeMutableBytes { try file.read(into: $0, at: offset) }
        guard count > 0 else { break }
        buffer.withUnsafeBytes { state.update(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        offset += Int64(count)
      }
      return Value(size: offset, sha256: state.finish())
    }
  }
}
