import Glibc

/// Reads and writes small text files.
package enum TextFile {
  /// The whole file. Throws `EFBIG` if it is longer than `limit` bytes.
  package static func read(_ path: String, limit: Int = 1 << 20) throws(SystemError) -> String {
    String(decoding: try bytes(of: path, limit: limit), as: UTF8.self)
  }

  /// The same, but as bytes, which need not be UTF-8.
  package static func bytes(of path: String, limit: Int = 1 << 20) throws(SystemError) -> [UInt8] {
    try FileDescriptor.open(path, O_RDONLY).contents(limit: limit)
  }

  /// Replaces the file atomically. `mode` is that of chmod(2).
  package static func write(_ text: String, to path: String, mode: mode_t = 0o644) throws(SystemError) {
    let temporary = path + ".new"
    unlink(temporary)
    let file = try FileDescriptor.open(temporary, O_WRONLY | O_CREAT | O_TRUNC, mode: mode)
    var failure: SystemError?
    Array(text.utf8).withUnsafeBytes { bytes in
      do throws(SystemError) { try file.write(bytes, at: 0) } catch { failure = error }
    }
    if let failure { throw failure }
    try file.sync()
    guard rename(temporary, path) == 0 else { throw SystemError(errno: errno, operation: "rename to \(path)") }
  }
}
