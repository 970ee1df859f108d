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

/// Removes a file, or a directory with its contents. Ignores entries that are absent or cannot be removed.
package func removeTree(_ path: String) {
  rh_remove_tree(path)
}
