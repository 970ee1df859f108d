import Glibc

/// File operations for setting up local services.
enum LocalFile {
  static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  static func isExecutable(_ path: String) -> Bool { access(path, X_OK) == 0 }

  /// In bytes; 0 if there is no such file.
  static func size(_ path: String) -> Int {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_size) : 0
  }

  /// A small file as text, or the last `last` bytes of a larger one; nil if it cannot be read.
  static func text(of path: String, last: Int = 1 << 20) -> String? {
    guard let file = fopen(path, "re") else { return nil }
    defer { fclose(file) }
    // If the file is shorter, it is read from its beginning.
    fseek(file, -last, SEEK_END)
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while bytes.count < last {
      let count = fread(&buffer, 1, buffer.count, file)
      if count == 0 { break }
      bytes.append(contentsOf: buffer[..<count])
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// What a log says last, as the end of a sentence about a failure: the errors that ended PostgreSQL, or the last lines if
  /// there are none. `start` is the log's size before the process that failed.
  static func end(of log: String, from start: Int = 0) -> String {
    let text = text(of: log, last: min(64 << 10, size(log) - start)) ?? ""
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
}
