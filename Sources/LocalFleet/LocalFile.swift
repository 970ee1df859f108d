import Glibc
import ReelhaulSystem

/// File operations for setting up local services.
enum LocalFile {
  static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  static func isExecutable(_ path: String) -> Bool { access(path, X_OK) == 0 }

  /// In bytes; 0 if there is no such file.
  static func size(_ path: String) -> Int {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_size) : 0
  }

  /// What a log says last, as the end of a sentence about a failure: the errors that ended PostgreSQL, or the last lines if
  /// there are none. `start` is the log's size before the process that failed.
  static func end(of log: String, from start: Int = 0) -> String {
    let text = readText(log, last: min(64 << 10, size(log) - start)) ?? ""
    let lines = text.split(separator: "\n")
    let causes = fatalErrors(in: lines)
    let told = causes.isEmpty ? lines.suffix(10) : causes.suffix(5)
    return "the end of \(log) says: \(told.joined(separator: "; "))"
  }

  /// The errors of PostgreSQL's log that end a process, each with what is said about it. Those of clients that come too
  /// early are left out.
  private static func fatalErrors(in lines: [Substring]) -> [Substring] {
    var errors: [Substring] = []
    var isInError = false
    for line in lines {
      if let word = line.firstRange(of: "FATAL:") ?? line.firstRange(of: "PANIC:") {
        isInError = !line.contains("FATAL:  the database system is ")
        if isInError { errors.append(line[word.lowerBound...]) }
      } else if isInError, let word = line.firstRange(of: "DETAIL:") ?? line.firstRange(of: "HINT:") {
        errors.append(line[word.lowerBound...])
      } else {
        isInError = false
      }
    }
    return errors
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
