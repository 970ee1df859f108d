import CReelhaulSystem
import Glibc

/// Makes a directory and those above it, as far as they are missing.
package func makeDirectories(_ path: String) throws(SystemError) {
  var made = path.hasPrefix("/") ? "" : "."
  for part in path.split(separator: "/") {
    made += "/\(part)"
    guard mkdir(made, 0o755) == 0 || errno == EEXIST else { throw .last("make directory \(made)") }
  }
}

/// Removes a file or a directory with all it contains; what is absent or refuses is passed over.
package func removeTree(_ path: String) {
  rh_remove_tree(path)
}
