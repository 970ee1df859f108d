import CReelhaulSystem
import Glibc

extension FileDescriptor {
  /// Sizes of this file's file system in bytes: `free` is what an unprivileged process can still write, `total` is
  /// free and used space together, or nil if the file system does not tell.
  package borrowing func space() throws(SystemError) -> (free: Int64, total: Int64?) {
    var status = statvfs()
    guard fstatvfs(raw, &status) == 0 else { throw .last("statvfs \(path)") }
    func bytes(_ blocks: fsblkcnt_t) -> Int64 {
      let (bytes, overflow) = UInt64(blocks).multipliedReportingOverflow(by: UInt64(status.f_frsize))
      return overflow ? .max : Int64(clamping: bytes)
    }
    return (bytes(status.f_bavail), status.f_blocks == 0 ? nil : bytes(status.f_blocks))
  }

  /// Whether closing a file of this file system writes nothing. Network file systems write its changes before they close it.
  package borrowing func closesWithoutWriting() -> Bool { rh_closes_without_writing(raw) }

  /// The mount over which the file was opened, and that at a path; 0 if the kernel does not tell it. A file system that is
  /// mounted again has another one.
  package borrowing func mount() -> UInt64 { rh_mount(raw, "") }
  package static func mount(at path: String) -> UInt64 { rh_mount(AT_FDCWD, path) }

  /// Whether the file is on a file system that another machine or program serves.
  package borrowing func isRemote() -> Bool { rh_is_remote(raw) }

  /// Stores `value` as the extended attribute `name` of the file. ENOTSUP if the file system has no attributes.
  package borrowing func setAttribute(_ name: String, _ value: String) throws(SystemError) {
    let result = rh_set_attribute(raw, name, value, value.utf8.count)
    guard result >= 0 else { throw SystemError(errno: -result, operation: "mark \(path)") }
  }

  /// The extended attribute `name`, of at most 256 bytes; nil if the file has no attribute of this name.
  package borrowing func attribute(_ name: String) throws(SystemError) -> String? {
    var bytes = [UInt8](repeating: 0, count: 256)
    let count = rh_get_attribute(raw, name, &bytes, bytes.count)
    if count == -ENODATA { return nil }
    guard count >= 0 else { throw SystemError(errno: -count, operation: "read the mark of \(path)") }
    return String(decoding: bytes[..<Int(count)], as: UTF8.self)
  }

  /// Locks this file; false while another process holds the lock. ``unlock()`` or closing the file releases it. Within
  /// one process, every holder of this descriptor holds the lock.
  package borrowing func tryLock() throws(SystemError) -> Bool {
    let result = rh_try_lock(raw)
    if result == -EWOULDBLOCK { return false }
    guard result >= 0 else { throw SystemError(errno: -result, operation: "lock \(path)") }
    return true
  }

  package borrowing func unlock() {
    _ = rh_unlock(raw)
  }
}

extension FileDescriptor {
  /// The bytes of `range`; fewer if the file ends before.
  package borrowing func read(_ range: Range<Int64>) throws(SystemError) -> [UInt8] {
    var failure: SystemError?
    let bytes = [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
      do throws(SystemError) {
        count = try read(into: UnsafeMutableRawBufferPointer(buffer), at: range.lowerBound)
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return bytes
  }

  /// Writes the UTF-8 of `text` at `offset`.
  package borrowing func write(_ text: String, at offset: Int64) throws(SystemError) {
    var failure: SystemError?
    var text = text
    text.withUTF8 { bytes in
      do throws(SystemError) {
        try write(UnsafeRawBufferPointer(bytes), at: offset)
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
  }
}
