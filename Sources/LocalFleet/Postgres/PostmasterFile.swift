import Glibc

/// The content of `postmaster.pid` in a data directory.
struct PostmasterFile: Equatable {
  let pid: pid_t
  let isReady: Bool

  /// Lines: pid, data directory, start time, port, socket directory, address, shared memory, status.
  init?(_ text: String) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    guard let first = lines.first, let pid = pid_t(first), pid > 0 else { return nil }
    self.pid = pid
    isReady = lines.count > 7 && lines[7].hasPrefix("ready")
  }

  /// Whether the process is a server on this directory: a postmaster's working directory is its data directory.
  func isRunning(on dataDirectory: String) -> Bool {
    guard let wanted = realPath(dataDirectory) else { return false }
    if let working = realPath("/proc/\(pid)/cwd") { return working == wanted }
    // In a container, root may not see the working directories of others, but their arguments.
    guard errno == EACCES, let arguments = LocalFile.text(of: "/proc/\(pid)/cmdline") else { return false }
    let words = arguments.split(separator: "\0")
    return words.firstIndex(of: "-D").flatMap { words[$0...].dropFirst().first }.flatMap { realPath(String($0)) }
      == wanted
  }

  /// Whether the process that started the server has ended, so that nobody supervises the server.
  var isOrphan: Bool {
    guard let status = LocalFile.text(of: "/proc/\(pid)/stat"), let end = status.lastIndex(of: ")") else { return true }
    let fields = status[end...].split(separator: " ")
    return fields.count > 2 && fields[2] == "1"
  }
}

/// A path without symbolic links; nil if it cannot be found out.
private func realPath(_ path: String) -> String? {
  guard let found = realpath(path, nil) else { return nil }
  defer { free(found) }
  return String(cString: found)
}
