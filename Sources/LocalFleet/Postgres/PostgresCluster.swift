import Glibc
import ReelhaulSystem

/// A data directory and its files, before a server runs on it.
struct PostgresCluster: Sendable {
  let installation: PostgresInstallation
  let user: ServiceUser?
  /// The directory that contains everything: `data`, the log, the password.
  let directory: String
  let password: String?

  var dataDirectory: String { "\(directory)/data" }
  var logFile: String { "\(directory)/postgresql.log" }
  var socketDirectory: String? { Self.fitsSocket(dataDirectory) ? dataDirectory : nil }

  /// A socket's path has at most 107 bytes, and PostgreSQL adds its own name.
  static func fitsSocket(_ directory: String) -> Bool { directory.utf8.count <= 80 }

  /// Creates the missing parts.
  static func open(
    _ directory: String, authentication: EmbeddedPostgres.Authentication
  ) async throws -> PostgresCluster {
    let user = try ServiceUser.forPostgres()
    try user?.checkOwns("\(directory)/data")
    try makeDirectory(directory, for: user)
    if let user, let obstacle = user.obstacle(on: "\(directory)/data") {
      throw LocalFleetError(
        "PostgreSQL runs as the user \(user.name), which may not enter \(obstacle): "
          + "choose a data directory elsewhere, chmod o+x \(obstacle), or do not run as root")
    }
    let version = "\(directory)/data/PG_VERSION"
    let made = LocalFile.text(of: version).flatMap { Int($0.prefix { $0.isNumber }) }
    // Otherwise what is there would get the password of a new one.
    guard made != nil || access(version, F_OK) != 0 && [ENOENT, ENOTDIR].contains(errno) else {
      throw LocalFleetError("\(version) cannot be read")
    }
    let installation = try PostgresInstallation.find(major: made)
    let secret = "\(directory)/password"
    if made == nil, authentication == .password { try writePassword(to: secret, for: user) }
    let password = authentication == .password ? LocalFile.text(of: secret) : nil
    let cluster = PostgresCluster(
      installation: installation, user: user, directory: directory, password: password)
    if made == nil { try await cluster.initialize(authentication) }
    return cluster
  }

  /// Runs `initdb` in a directory that gets its final name when it is complete.
  private func initialize(_ authentication: EmbeddedPostgres.Authentication) async throws {
    let fresh = "\(directory)/data.new"
    removeTree(fresh)
    var options = ChildProcess.Options()
    options.user = user.map { ($0.uid, $0.gid) }
    options.stdout = logFile
    options.stderr = logFile
    options.workingDirectory = directory
    var arguments = ["-D", fresh, "-U", EmbeddedPostgres.role, "-E", "UTF8", "--locale=C", "--auth-local=trust"]
    switch authentication {
    case .password: arguments += ["--auth-host=scram-sha-256", "--pwfile=\(directory)/password"]
    case .trust: arguments += ["--auth-host=trust", "--no-sync"]
    }
    let logStart = LocalFile.size(logFile)
    let status = await (try ChildProcess(installation.initdb, arguments, options)).wait()
    guard status == .exited(0) else {
      throw LocalFleetError("initdb failed (\(status)); \(LocalFile.end(of: logFile, from: logStart))")
    }
    try await createDatabase(in: fresh, syncing: authentication == .password)
    guard rename(fresh, dataDirectory) == 0 else { throw SystemError.last("rename \(fresh)") }
    if authentication == .password { try FileDescriptor.open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC).sync() }
  }

  /// Creates the fleet's database, with a separate server that accepts no connections.
  private func createDatabase(in data: String, syncing: Bool) async throws {
    let sql = "\(directory)/create.sql"
    try write("CREATE DATABASE \(EmbeddedPostgres.role);\n", to: sql, for: user)
    defer { unlink(sql) }
    var options = ChildProcess.Options()
    options.user = user.map { ($0.uid, $0.gid) }
    options.stdout = logFile
    options.stderr = logFile
    options.workingDirectory = data
    // The server that runs on it syncs only what it writes itself.
    let command = "exec \"$0\" --single -D \"$1\" -c fsync=\(syncing ? "on" : "off") postgres < \"$2\""
    let logStart = LocalFile.size(logFile)
    let process = try ChildProcess("/bin/sh", ["-c", command, installation.postgres, data, sql], options)
    let status = await process.wait()
    guard status == .exited(0) else {
      throw LocalFleetError(
        "the database could not be created (\(status)); \(LocalFile.end(of: logFile, from: logStart))")
    }
  }

  /// After a crash: ends the server that was left behind, or removes its pid file.
  func takeOver() async throws {
    let path = "\(dataDirectory)/postmaster.pid"
    guard let text = LocalFile.text(of: path), let file = PostmasterFile(text) else { return }
    guard file.isRunning(on: dataDirectory) else {
      unlink(path)
      return
    }
    let deadline = BootInstant.now + .seconds(30)
    while file.isRunning(on: dataDirectory) {
      // Only orphans are told to end, because a server with a parent may already be shutting down on its parent's
      // order.
      if file.isOrphan { kill(file.pid, SIGINT) }
      guard !deadline.hasPassed else {
        throw LocalFleetError("\(dataDirectory) is in use by the PostgreSQL server \(file.pid): stop it first")
      }
      try await Task.sleep(for: .milliseconds(50))
    }
  }

  private static func makeDirectory(_ path: String, for user: ServiceUser?) throws {
    try makeDirectories(path)
    if let user, chown(path, user.uid, user.gid) != 0 { throw SystemError.last("chown \(path)") }
  }

  private static func writePassword(to path: String, for user: ServiceUser?) throws {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
    var random = SystemRandomNumberGenerator()
    let password = String((0..<32).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &random)] })
    try write(password, to: path, for: user)
  }
}

/// Writes a small file that only its owner may read.
private func write(_ text: String, to path: String, for user: ServiceUser?) throws {
  unlink(path)
  let file = try FileDescriptor.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode: 0o600)
  var text = text
  try text.withUTF8 { try file.write(UnsafeRawBufferPointer($0), at: 0) }
  try file.sync()
  if let user, fchown(file.raw, user.uid, user.gid) != 0 { throw SystemError.last("chown \(path)") }
}
