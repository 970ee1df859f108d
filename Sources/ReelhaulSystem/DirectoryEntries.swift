import CReelhaulSystem
import Glibc

/// The name of a directory's entry, byte by byte: a file system may hold names that are not UTF-8.
package struct EntryName: Hashable, Sendable, CustomStringConvertible {
  private let bytes: [CChar]

  /// `text` is one name, never a path.
  package init(_ text: String) {
    bytes = Array(text.utf8CString)
  }

  fileprivate init?(_ entry: UnsafeMutablePointer<dirent>) {
    bytes = withUnsafeBytes(of: &entry.pointee.d_name) { name in
      name.prefix { $0 != 0 }.map { CChar(bitPattern: $0) } + [0]
    }
    if self == EntryName(".") || self == EntryName("..") { return nil }
  }

  package var description: String { String(decoding: bytes.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self) }

  fileprivate func call<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    bytes.withUnsafeBufferPointer { body($0.baseAddress!) }
  }
}

extension FileDescriptor {
  /// Up to `limit` entries of this directory, `.` and `..` left out, in no order.
  package borrowing func entryNames(limit: Int) throws(SystemError) -> [EntryName] {
    let copy = rh_open_beneath(raw, ".", O_RDONLY | O_DIRECTORY, 0)
    guard copy >= 0 else { throw SystemError(errno: -copy, operation: "list \(path)") }
    // From here on the stream owns the descriptor.
    guard let stream = fdopendir(copy) else {
      close(copy)
      throw .last("list \(path)")
    }
    defer { closedir(stream) }
    var names: [EntryName] = []
    while names.count < limit {
      // Only the error number tells a failed read from the end.
      errno = 0
      guard let entry = readdir(stream) else {
        guard errno == 0 else { throw .last("list \(path)") }
        break
      }
      if let name = EntryName(entry) { names.append(name) }
    }
    return names
  }

  /// Of the entry itself, not of what a symbolic link points to.
  package borrowing func status(of name: EntryName) throws(SystemError) -> stat {
    var status = stat()
    guard name.call({ fstatat(raw, $0, &status, AT_SYMLINK_NOFOLLOW) }) == 0 else {
      throw .last("stat \(path)/\(name)")
    }
    return status
  }

  /// Opens the directory `name`. Throws ELOOP if it is a symbolic link, and ENOTDIR if it is not a directory.
  package borrowing func openDirectory(_ name: EntryName) throws(SystemError) -> FileDescriptor {
    let descriptor = name.call { rh_open_beneath(raw, $0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0) }
    guard descriptor >= 0 else { throw SystemError(errno: -descriptor, operation: "open \(path)/\(name)") }
    return FileDescriptor(raw: descriptor, path: "\(path)/\(name)")
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
