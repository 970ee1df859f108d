import CReelhaulSystem
import Glibc

/// The name of a directory's entry, byte by byte: a file system may hold names that are not UTF-8.
package struct EntryName: Hashable, Sendable, CustomStringConvertible {
  private let bytes: [CChar]

  /// `text` is one name, never a path.
  package init(_ text: String) {
    bytes = Array(text.utf8CString)
  }

  /// Nil for `.` and `..`. `name` ends with a zero.
  fileprivate init?(_ name: UnsafePointer<CChar>) {
    if strcmp(name, ".") == 0 || strcmp(name, "..") == 0 { return nil }
    bytes = Array(UnsafeBufferPointer(start: name, count: strlen(name) + 1))
  }

  package var description: String { String(decoding: bytes.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self) }

  fileprivate func call<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    bytes.withUnsafeBufferPointer { body($0.baseAddress!) }
  }
}

extension FileDescriptor {
  /// The next entries of this open directory, in no order and without `.` and `..`: a portion that fits into memory,
  /// because a directory may hold millions. It is empty only at the end. See ``rewind()``.
  package borrowing func nextEntries() throws(SystemError) -> [EntryName] {
    var names: [EntryName] = []
    while names.isEmpty {
      let length = withUnsafeTemporaryAllocation(byteCount: 32 << 10, alignment: 8) { buffer in
        let length = Int(rh_list(raw, buffer.baseAddress!, buffer.count))
        var start = 0
        while start < length {
          let name = buffer.baseAddress! + start + Self.entryName
          if let name = EntryName(name.assumingMemoryBound(to: CChar.self)) { names.append(name) }
          start += Int(buffer.load(fromByteOffset: start + Self.entryLength, as: UInt16.self))
        }
        return length
      }
      // A directory that was removed meanwhile has no entries.
      if length == 0 || length == -Int(ENOENT) { break }
      guard length > 0 else { throw SystemError(errno: Int32(-length), operation: "list \(path)") }
    }
    return names
  }

  private static let entryLength = MemoryLayout<dirent>.offset(of: \.d_reclen)!
  private static let entryName = MemoryLayout<dirent>.offset(of: \.d_name)!

  /// Lets ``nextEntries()`` begin again, with what there is now.
  package borrowing func rewind() throws(SystemError) {
    guard lseek(raw, 0, SEEK_SET) == 0 else { throw .last("list \(path)") }
  }

  /// Of the entry itself, not of what a symbolic link points to. Throws EXDEV if something is mounted there.
  package borrowing func status(of name: EntryName) throws(SystemError) -> stat {
    var status = stat()
    let result = name.call { rh_stat_beneath(raw, $0, &status) }
    guard result >= 0 else { throw failure(-result, "stat", name) }
    return status
  }

  /// Opens the directory `name`. Throws ELOOP if it is a symbolic link, ENOTDIR if it is not a directory, and EXDEV if
  /// it is on another file system.
  package borrowing func openDirectory(_ name: EntryName) throws(SystemError) -> FileDescriptor {
    let result = name.call { rh_open_beneath(raw, $0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, false) }
    guard result >= 0 else { throw failure(-result, "open", name) }
    let directory = FileDescriptor(raw: result, path: "\(path)/\(name)")
    // Not all file systems are mounts: a Btrfs subvolume is none.
    guard try directory.status().st_dev == status().st_dev else { throw .otherFileSystem(directory.path) }
    return directory
  }

  private borrowing func failure(_ errno: Int32, _ operation: String, _ name: EntryName) -> SystemError {
    let path = "\(self.path)/\(name)"
    return errno == EXDEV ? .otherFileSystem(path) : SystemError(errno: errno, operation: "\(operation) \(path)")
  }

  /// Removes an entry that is not a directory.
  package borrowing func remove(_ name: EntryName) throws(SystemError) {
    guard name.call({ unlinkat(raw, $0, 0) }) == 0 else { throw .last("remove \(path)/\(name)") }
  }

  /// Removes an empty directory.
  package borrowing func removeDirectory(_ name: EntryName) throws(SystemError) {
    guard name.call({ unlinkat(raw, $0, AT_REMOVEDIR) }) == 0 else { throw .last("remove \(path)/\(name)") }
  }
}
