import Glibc

/// A directory that a test and the handlers of its worker processes share: handlers append lines, and wait for marks.
struct Journal {
  let directory: String

  /// Appends a line, whole, whatever process writes beside this one.
  func write(_ line: String) {
    let file = open("\(directory)/journal", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
    guard file >= 0 else { return }
    _ = "\(line)\n".withCString { Glibc.write(file, $0, strlen($0)) }
    close(file)
  }

  /// Returns when the test has made the file `name`. Does not stop when its task is canceled.
  func wait(for name: String) async {
    while access("\(directory)/\(name)", F_OK) != 0 {
      await Task.detached { try? await Task.sleep(for: .milliseconds(10)) }.value
    }
  }
}
