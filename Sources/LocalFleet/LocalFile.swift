import Glibc
import ReelhaulSystem

/// File operations for setting up local services.
enum LocalFile {
  static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  static func isExecutable(_ path: String) -> Bool { access(path, X_OK) == 0 }

  /// The last lines of a log, as the end of a sentence about a failure.
  static func end(of log: String) -> String {
    let lines = (readText(log, last: 64 << 10) ?? "").split(separator: "\n").suffix(10)
    return "the end of \(log) says:\n\(lines.joined(separator: "\n"))"
  }

  /// Writes a whole file, and replaces an existing one.
  static func write(_ path: String, _ contents: String, mode: mode_t = 0o644) throws(SystemError) {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
    guard file >= 0 else { throw .last("open \(path)") }
    defer { close(file) }
    var bytes = Array(contents.utf8)[...]
    while !bytes.isEmpty {
      let count = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
      guard count > 0 else { throw .last("write \(path)") }
      bytes = bytes.dropFirst(count)
    }
  }
}
