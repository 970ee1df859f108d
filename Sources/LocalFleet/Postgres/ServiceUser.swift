import Glibc

/// The user that PostgreSQL runs as, because PostgreSQL refuses to run as root.
package struct ServiceUser: Sendable, Equatable {
  package let name: String
  package let uid: UInt32
  package let gid: UInt32

  /// Nil if this process is not root, and can run PostgreSQL itself.
  static func forPostgres() throws(LocalFleetError) -> ServiceUser? {
    guard geteuid() == 0 else { return nil }
    for name in ["postgres", "nobody"] {
      if let user = ServiceUser(named: name) { return user }
    }
    throw LocalFleetError("PostgreSQL does not run as root, and there is no user postgres: useradd postgres")
  }

  private init?(named name: String) {
    var entry = passwd()
    var found: UnsafeMutablePointer<passwd>?
    var buffer = [CChar](repeating: 0, count: 16384)
    guard getpwnam_r(name, &entry, &buffer, buffer.count, &found) == 0, found != nil else { return nil }
    self.name = name
    uid = entry.pw_uid
    gid = entry.pw_gid
  }

  /// Throws if another user's PostgreSQL has made the directory: this one could not read it.
  func checkOwns(_ path: String) throws(LocalFleetError) {
    var status = stat()
    guard stat(path, &status) == 0, status.st_uid != uid else { return }
    let owner = getpwuid(status.st_uid).map { String(cString: $0.pointee.pw_name) } ?? "\(status.st_uid)"
    throw LocalFleetError(
      "\(path) belongs to the user \(owner), and as root PostgreSQL runs as the user \(name): start it as \(owner)")
  }

  /// The first directory above `path` that the user cannot pass through.
  func obstacle(on path: String) -> String? {
    var place = ""
    for component in path.split(separator: "/").dropLast() {
      place += "/\(component)"
      var status = stat()
      guard stat(place, &status) == 0 else { return nil }
      let bit: mode_t = status.st_uid == uid ? 0o100 : status.st_gid == gid ? 0o010 : 0o001
      if status.st_mode & bit == 0 { return place }
    }
    return nil
  }
}
