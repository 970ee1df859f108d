import CReelhaulSystem
import Glibc

/// An open file, which is closed with its owner. Offsets and lengths are in bytes. Every failure is a ``SystemError``.
package struct FileDescriptor: ~Copyable, Sendable {
  package let raw: Int32
  /// The path, for error messages.
  package let path: String

  /// Takes ownership of `raw`.
  package init(raw: Int32, path: String) {
    self.raw = raw
    self.path = path
  }

  deinit {
    Glibc.close(raw)
  }

  package static func open(_ path: String, _ flags: Int32, mode: mode_t = 0o644) throws(SystemError) -> FileDescriptor {
    FileDescriptor(raw: try check(rh_open(path, flags, mode), "open \(path)"), path: path)
  }

  /// Opens `path` below this directory. Symbolic links, `..` and absolute paths cannot lead out of it: they fail with
  /// ELOOP or EXDEV. Unless it `crossesMounts`, it also fails with EXDEV if something is mounted at `path` or on the
  /// way.
  package borrowing func openBeneath(
    _ path: String, _ flags: Int32, mode: mode_t = 0o644, crossesMounts: Bool = true
  ) throws(SystemError) -> FileDescriptor {
    let full = path == "." ? self.path : "\(self.path)/\(path)"
    let result = rh_open_beneath(raw, path, flags, mode, crossesMounts)
    if !crossesMounts, result == -EXDEV { throw .otherFileSystem(full) }
    return FileDescriptor(raw: try Self.check(result, "open \(full)"), path: full)
  }

  package borrowing func size() throws(SystemError) -> Int64 {
    try Int64(status().st_size)
  }

  package borrowing func status() throws(SystemError) -> stat {
    var status = stat()
    guard fstat(raw, &status) == 0 else { throw .last("stat \(path)") }
    return status
  }

  /// Writes all of `bytes` at `offset`.
  package borrowing func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) {
    var done = 0
    while done < bytes.count {
      let count = pwrite(raw, bytes.baseAddress! + done, bytes.count - done, off_t(offset) + done)
      if count >= 0 {
        done += count
      } else if errno != EINTR {
        throw .last("write \(path)")
      }
    }
  }

  /// Reads up to `buffer.count` bytes at `offset`. The count is smaller only at the end of the file.
  package borrowing func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemError) -> Int {
    try fill(buffer) { pread($0, $1, $2, off_t(offset) + $3) }
  }

  /// Calls `read` with the descriptor, a place, the size of it and how many bytes there are before it.
  private borrowing func fill(
    _ buffer: UnsafeMutableRawBufferPointer, _ read: (Int32, UnsafeMutableRawPointer, Int, Int) -> Int
  ) throws(SystemError) -> Int {
    var done = 0
    while done < buffer.count {
      let count = read(raw, buffer.baseAddress! + done, buffer.count - done, done)
      if count > 0 {
        done += count
      } else if count == 0 {
        break
      } else if errno != EINTR {
        throw .last("read \(path)")
      }
    }
    return done
  }

  /// The whole content of a small file, or what comes out of a pipe. Throws `EFBIG` if it is longer than `limit` bytes.
  package borrowing func contents(limit: Int = .max) throws(SystemError) -> [UInt8] {
    let isSeekable = lseek(raw, 0, SEEK_CUR) >= 0
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 64 << 10)
    var count = 0
    repeat {
      let result: Result<Int, SystemError> = piece.withUnsafeMutableBytes { buffer in
        do throws(SystemError) {
          return .success(
            isSeekable
              ? try read(into: buffer, at: Int64(bytes.count))
              : try fill(buffer) { descriptor, place, size, _ in Glibc.read(descriptor, place, size) })
        } catch {
          return .failure(error)
        }
      }
      count = try result.get()
      bytes += piece[..<count]
      guard bytes.count <= limit else { throw SystemError(errno: EFBIG, operation: "read \(path)") }
    } while count == piece.count
    return bytes
  }

  /// Blocks until the data, and the metadata needed to read it, are on stable storage.
  package borrowing func syncData() throws(SystemError) {
    try retrying("fdatasync") { fdatasync($0) }
  }

  /// Blocks until the data and all metadata are on stable storage.
  package borrowing func sync() throws(SystemError) {
    try retrying("fsync") { fsync($0) }
  }

  package borrowing func truncate(to size: Int64) throws(SystemError) {
    try retrying("truncate") { ftruncate($0, off_t(size)) }
  }

  /// Sets the time of the last change to now, on the file system's own clock.
  package borrowing func touch() throws(SystemError) {
    guard futimens(raw, nil) == 0 else { throw .last("touch \(path)") }
  }

  /// Allocates blocks for the range and extends the file to its end. EOPNOTSUPP if the file system cannot do this.
  package borrowing func allocate(_ range: Range<Int64>) throws(SystemError) {
    guard !range.isEmpty else { return }
    _ = try Self.check(rh_fallocate(raw, range.lowerBound, Int64(range.count)), "allocate \(path)")
  }

  private borrowing func retrying(_ name: String, _ call: (Int32) -> Int32) throws(SystemError) {
    while call(raw) != 0 {
      guard errno == EINTR else { throw .last("\(name) \(path)") }
    }
  }

  private static func check(_ result: Int32, _ operation: @autoclosure () -> String) throws(SystemError) -> Int32 {
    guard result >= 0 else { throw SystemError(errno: -result, operation: operation()) }
    return result
  }

  /// Renames between open directories. EEXIST if the new name exists.
  package static func renameNoReplace(
    from directory: borrowing FileDescriptor, _ name: String, to target: borrowing FileDescriptor, _ newName: String
  ) throws(SystemError) {
    _ = try check(
      rh_rename_noreplace(directory.raw, name, target.raw, newName),
      "rename \(directory.path)/\(name) to \(target.path)/\(newName)")
  }
}

/// CRC32C (Castagnoli) of `bytes`, continuing from `crc`.
package func crc32c(_ bytes: UnsafeRawBufferPointer, continuing crc: UInt32 = 0) -> UInt32 {
  rh_crc32c(crc, bytes.baseAddress, bytes.count)
}
