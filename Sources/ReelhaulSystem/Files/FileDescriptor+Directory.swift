import CReelhaulSystem
import Glibc

// Operations on the entries of an open directory. `name` is one name, never a path.
extension FileDescriptor {
  package borrowing func makeDirectory(_ name: String, mode: mode_t = 0o755) throws(SystemError) {
    guard mkdirat(raw, name, mode) == 0 else { throw .last("make directory \(path)/\(name)") }
  }

  package borrowing func remove(_ name: String) throws(SystemError) {
    guard unlinkat(raw, name, 0) == 0 else { throw .last("remove \(path)/\(name)") }
  }

  /// The status of the entry itself, not of the target of a symbolic link.
  package borrowing func status(of name: String) throws(SystemError) -> stat {
    var status = stat()
    guard fstatat(raw, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { throw .last("stat \(path)/\(name)") }
    return status
  }

  /// The names in this directory, without `.` and `..`, in no particular order. Names that are not UTF-8 are repaired:
  /// whoever acts on any name that there is uses ``nextEntries()``.
  package borrowing func entries() throws(SystemError) -> [String] {
    // This one has a position of its own, because several threads may list one open directory.
    let directory = try openBeneath(".", O_RDONLY | O_DIRECTORY)
    var names: [String] = []
    while case let next = try directory.nextEntries(), !next.isEmpty { names += next.map(\.description) }
    return names
  }

  /// Renames between open directories. Replaces an existing file with the new name.
  package static func rename(
    from directory: borrowing FileDescriptor, _ name: String, to target: borrowing FileDescriptor, _ newName: String
  ) throws(SystemError) {
    guard renameat(directory.raw, name, target.raw, newName) == 0 else {
      throw .last("rename \(directory.path)/\(name) to \(target.path)/\(newName)")
    }
  }

  /// Gives a file a second name. EEXIST if the new name exists.
  package static func link(
    from directory: borrowing FileDescriptor, _ name: String, to target: borrowing FileDescriptor, _ newName: String
  ) throws(SystemError) {
    guard linkat(directory.raw, name, target.raw, newName, 0) == 0 else {
      throw .last("link \(directory.path)/\(name) to \(target.path)/\(newName)")
    }
  }
}
