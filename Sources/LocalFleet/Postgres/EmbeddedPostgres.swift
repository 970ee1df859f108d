import Glibc
import ReelhaulSystem

/// A private PostgreSQL: a data directory made by `initdb`, and one server process that ends with this one.
///
/// It listens on a loopback port and on a socket in its data directory. Started by root it runs as an unprivileged
/// user. Started again on the same directory it goes on where it was, after a crash too.
package final class EmbeddedPostgres: Sendable {
  /// The superuser's role, and the name of the database that is made.
  package static let role = "reelhaul"

  package enum Authentication: Sendable {
    /// A password, generated once and kept beside the data.
    case password
    /// Anybody on this machine may connect: for tests.
    case trust
  }

  package enum Stop: Sendable {
    /// Sessions are ended, everything is written.
    case fast
    /// As a crash: what was committed is recovered at the next start.
    case immediate

    var signal: Int32 { self == .fast ? SIGINT : SIGQUIT }
  }

  package let dataDirectory: String
  package let port: Int
  package let logFile: String
  /// Whom the server runs as, where this process is root.
  package let user: ServiceUser?
  private let process: ChildProcess
  private let password: String?

  private init(_ cluster: PostgresCluster, port: Int, process: ChildProcess) {
    dataDirectory = cluster.dataDirectory
    logFile = cluster.logFile
    password = cluster.password
    user = cluster.user
    self.port = port
    self.process = process
  }

  /// Starts the server on `directory`, made where it is missing, and returns when it takes connections.
  /// `port` nil: a free one.
  package static func start(
    directory: String, port: Int? = nil, authentication: Authentication = .password,
    settings: (_ major: Int) -> PostgresSettings = PostgresSettings.fleet
  ) async throws -> EmbeddedPostgres {
    let cluster = try await PostgresCluster.open(directory, authentication: authentication)
    try await cluster.takeOver()
    let port = try port ?? FreePort.find()
    var options = ChildProcess.Options()
    options.user = cluster.user.map { ($0.uid, $0.gid) }
    options.stdout = cluster.logFile
    options.stderr = cluster.logFile
    options.workingDirectory = cluster.dataDirectory
    options.signalOnParentDeath = SIGINT
    var arguments = ["-D", cluster.dataDirectory] + settings(cluster.installation.major).arguments
    arguments += ["-c", "port=\(port)", "-c", "listen_addresses=127.0.0.1"]
    arguments += ["-c", "unix_socket_directories=\(cluster.socketDirectory ?? "")"]
    let process = try ChildProcess(cluster.installation.postgres, arguments, options)
    let server = EmbeddedPostgres(cluster, port: port, process: process)
    do {
      try await server.waitUntilReady()
    } catch {
      // Also where the caller no longer wants it: nobody else knows of it.
      await server.stop(.immediate)
      throw error
    }
    return server
  }

  package var pid: pid_t { process.pid }
  package var isRunning: Bool { process.status == nil }

  /// For ``PostgresConfiguration``; the password is part of it.
  package func url(database: String = EmbeddedPostgres.role) -> String {
    let secret = password.map { ":\($0)" } ?? ""
    return "postgres://\(Self.role)\(secret)@127.0.0.1:\(port)/\(database)"
  }

  /// The same over the socket in the data directory, where its path is short enough for one.
  package func socketURL(database: String = EmbeddedPostgres.role) -> String? {
    guard PostgresCluster.fitsSocket(dataDirectory) else { return nil }
    let host = dataDirectory.utf8.map { byte in
      let isPlain = byte < 128 && (Character(Unicode.Scalar(byte)).isLetter || Character(Unicode.Scalar(byte)).isNumber)
      let hex = String(byte, radix: 16, uppercase: true)
      return isPlain ? String(Unicode.Scalar(byte)) : "%" + (hex.count < 2 ? "0" : "") + hex
    }
    return "postgres://\(Self.role)@\(host.joined()):\(port)/\(database)"
  }

  /// Ends the server and waits for it.
  package func stop(_ how: Stop = .fast) async {
    process.kill(how.signal)
    _ = await process.wait()
  }

  /// Waits until the server ends, by itself or because it is stopped.
  package func ended() async -> ExitStatus {
    await process.wait()
  }

  /// The same as ``stop(_:)``, blocking the calling thread.
  package func stopBlocking(_ how: Stop = .fast) {
    process.kill(how.signal)
    _ = process.waitBlocking()
  }

  private func waitUntilReady() async throws {
    let deadline = BootInstant.now + .seconds(60)
    while !deadline.hasPassed {
      if let status = process.status {
        throw EmbeddedPostgresError("PostgreSQL ended at once (\(status)); \(LocalFile.end(of: logFile))")
      }
      if let text = readText("\(dataDirectory)/postmaster.pid"), let file = PostmasterFile(text),
        file.pid == process.pid, file.isReady
      {
        return
      }
      try await Task.sleep(for: .milliseconds(10))
    }
    throw EmbeddedPostgresError("PostgreSQL was not ready after 60 s; \(LocalFile.end(of: logFile))")
  }
}
