import Glibc
import ReelhaulSystem

/// A private PostgreSQL: a data directory made by `initdb`, and one server process that ends with this process.
///
/// It listens on a loopback port and on a socket in its data directory. If root starts it, it runs as an unprivileged
/// user. If it is started again with the same directory, it continues with the same data, also after a crash.
package final class EmbeddedPostgres: Sendable {
  /// The superuser's role, and the name of the database that is created.
  package static let role = "reelhaul"

  package enum Authentication: Sendable {
    /// A password that is generated once and stored beside the data.
    case password
    /// Any user of this machine may connect: for tests.
    case trust
  }

  package enum Stop: Sendable {
    /// Sessions are ended, and everything is written.
    case fast
    /// Like a crash: the next start recovers the committed data.
    case immediate

    var signal: Int32 { self == .fast ? SIGINT : SIGQUIT }
  }

  package let dataDirectory: String
  package let port: Int
  package let logFile: String
  /// The user that the server runs as, if this process is root.
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

  /// Starts the server on `directory`, which is created if it is missing. Returns when the server accepts connections:
  /// after a crash not before it has recovered, however long this takes. Only the end of the process is a failure.
  /// `port` nil: a free port.
  ///
  /// - Parameter say: Is told, for people, if it takes long.
  package static func start(
    directory: String, port: Int? = nil, authentication: Authentication = .password,
    settings: PostgresSettings = .fleet, say: (String) -> Void = { _ in }
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
    var arguments = ["-D", cluster.dataDirectory] + settings.arguments
    arguments += ["-c", "port=\(port)", "-c", "listen_addresses=127.0.0.1"]
    arguments += ["-c", "unix_socket_directories=\(cluster.socketDirectory ?? "")"]
    let logStart = LocalFile.size(cluster.logFile)
    let process = try ChildProcess(cluster.installation.postgres, arguments, options)
    let server = EmbeddedPostgres(cluster, port: port, process: process)
    do {
      try await server.waitUntilReady(logStart, say)
    } catch {
      // Also if the caller was canceled, because nobody else knows of the server.
      await server.stop(.immediate)
      throw error
    }
    return server
  }

  package var pid: pid_t { process.pid }
  package var isRunning: Bool { process.status == nil }

  /// The URL for ``PostgresConfiguration``. It contains the password.
  package func url(database: String = EmbeddedPostgres.role, role: String = EmbeddedPostgres.role) -> String {
    let secret = password.map { ":\($0)" } ?? ""
    return "postgres://\(role)\(secret)@127.0.0.1:\(port)/\(database)"
  }

  /// The URL over the socket in the data directory; nil if the directory's path is too long for a socket.
  package func socketURL(database: String = EmbeddedPostgres.role) -> String? {
    guard PostgresCluster.fitsSocket(dataDirectory) else { return nil }
    let host = dataDirectory.utf8.map { byte in
      let isPlain = byte < 128 && (Character(Unicode.Scalar(byte)).isLetter || Character(Unicode.Scalar(byte)).isNumber)
      let hex = String(byte, radix: 16, uppercase: true)
      return isPlain ? String(Unicode.Scalar(byte)) : "%" + (hex.count < 2 ? "0" : "") + hex
    }
    return "postgres://\(Self.role)@\(host.joined()):\(port)/\(database)"
  }

  /// Ends the server and waits for its end.
  package func stop(_ how: Stop = .fast) async {
    process.kill(how.signal)
    _ = await process.wait()
  }

  /// Waits until the server ends, by itself or because it is stopped.
  package func ended() async -> ExitStatus {
    await process.wait()
  }

  /// Like ``stop(_:)``, but blocks the calling thread.
  package func stopBlocking(_ how: Stop = .fast) {
    process.kill(how.signal)
    _ = process.waitBlocking()
  }

  private func waitUntilReady(_ logStart: Int, _ say: (String) -> Void) async throws {
    var patience: BootInstant? = .now + .seconds(10)
    while true {
      if let status = process.status {
        throw LocalFleetError(
          "PostgreSQL ended at once (\(status)); \(LocalFile.end(of: logFile, from: logStart))")
      }
      if let text = LocalFile.text(of: "\(dataDirectory)/postmaster.pid"), let file = PostmasterFile(text),
        file.pid == process.pid, file.isReady
      {
        return
      }
      if patience?.hasPassed == true {
        patience = nil
        say("PostgreSQL does not accept connections yet: after a crash it recovers first. Its log: \(logFile)")
      }
      try await Task.sleep(for: .milliseconds(10))
    }
  }
}
