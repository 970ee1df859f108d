import Glibc

/// The limit of open files of this process.
package enum FileLimit {
  /// Raises the limit as far as the system allows, because every connection and every staging file is an open file.
  /// Returns what it is now.
  @discardableResult package static func raise() -> Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
    if limit.rlim_cur < limit.rlim_max {
      limit.rlim_cur = limit.rlim_max
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
    return Int(clamping: limit.rlim_cur)
  }
}
