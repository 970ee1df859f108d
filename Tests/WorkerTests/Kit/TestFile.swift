import Glibc
import ReelhaulSystem

/// Files of secrets for tests.
enum TestFile {
  /// Only the owner may read it.
  static func write(_ text: String, to path: String) throws {
    let file = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw SystemError(errno: errno, operation: "create \(path)") }
    defer { close(file) }
    let bytes = Array(text.utf8)
    guard Glibc.write(file, bytes, bytes.count) == bytes.count else {
      throw SystemError(errno: errno, operation: "write \(path)")
    }
  }
}
