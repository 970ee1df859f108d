import CReelhaulSystem
import Glibc

/// Makes a directory, and the missing directories above it.
package func makeDirectories(_ path: String) throws(SystemError) {
  var made = path.hasPrefix("/") ? "" : "."
  for part in path.split(separator: "/") {
    made += "/\(part)"
    guard mkdir(made, 0o755) == 0 || errno == EEXIST else { throw .last("make directory \(made)") }
  }
}

/// Removes a file, or a directory with its contents. Follows no link and enters no other file system. Ignores entries
/// that are absent or cannot be removed. Returns whether nothing is left.
@discardableResult
package func removeTree(_ path: String) -> Bool {
  let parts = path.split(separator: "/")
  let above = (path.hasPrefix("/") ? "/" : "./") + parts.dropLast().joined(separator: "/")
  guard let name = parts.last, let parent = try? FileDescriptor.open(above, rh_o_path | O_DIRECTORY) else {
    return access(path, F_OK) != 0
  }
  return remove(EntryName(String(name)), in: parent)
}

/// Whether the entry is gone.
private func remove(_ name: EntryName, in parent: borrowing FileDescriptor) -> Bool {
  guard (try? parent.remove(name)) == nil else { return true }
  if let directory = try? parent.openDirectory(name) {
    // Some file systems skip entries if others are removed meanwhile. So the listing is repeated until it removes none.
    var isDone = false
    while !isDone {
      isDone = true
      while let entries = try? directory.nextEntries(), !entries.isEmpty {
        for entry in entries where remove(entry, in: directory) { isDone = false }
      }
      if (try? directory.rewind()) == nil { break }
    }
  }
  return (try? parent.removeDirectory(name)) != nil
}
