import Glibc
import LocalFleet
import ReelhaulSystem

/// A PgBouncer in transaction mode before a PostgreSQL server, on a free port.
package final class PgBouncer: Sendable {
  /// Whether this version keeps prepared statements when the session changes: from 1.21 on.
  package static let carriesPreparedStatements: Bool = {
    var options = ChildProcess.Options()
    guard let directory = try? TemporaryDirectory() else { return false }
    options.stdout = "\(directory.path)/version"
    _ = try? ChildProcess("pgbouncer", ["--version"], options).waitBlocking()
    let text = (try? TestFleet.contents("\(directory.path)/version")) ?? []
    // PgBouncer 1.18.0
    let numbers = String(decoding: text, as: UTF8.self).split { $0 == " " || $0 == "\n" || $0 == "." }
    guard numbers.count > 2, let major = Int(numbers[1]), let minor = Int(numbers[2]) else { return false }
    return (major, minor) >= (1, 21)
  }()

  package let port: UInt16
  private let process: ChildProcess
  private let directory: String

  /// `serverSessions`: the number of sessions that all clients share.
  package init(before server: EmbeddedPostgres, serverSessions: Int = 2) async throws {
    port = UInt16(try LoopbackPort.free())
    directory = try TemporaryDirectory.make(prefix: "reelhaul-pgbouncer")
    let file = "\(directory)/pgbouncer.ini"
    let settings = """
      [databases]
      * = host=127.0.0.1 port=\(server.port) user=\(EmbeddedPostgres.role)
      [pgbouncer]
      listen_addr = 127.0.0.1
      listen_port = \(port)
      unix_socket_dir =
      auth_type = any
      pool_mode = transaction
      default_pool_size = \(serverSessions)
      max_client_conn = 200
      \(Self.carriesPreparedStatements ? "max_prepared_statements = 200" : "")

      """
    let descriptor = try FileDescriptor.open(file, O_WRONLY | O_CREAT | O_CLOEXEC)
    var text = settings
    try text.withUTF8 { try descriptor.write(UnsafeRawBufferPointer($0), at: 0) }
    var options = ChildProcess.Options()
    options.user = server.user.map { ($0.uid, $0.gid) }
    options.stdout = "\(directory)/pgbouncer.log"
    options.stderr = "\(directory)/pgbouncer.log"
    chmod(directory, 0o755)
    process = try ChildProcess("pgbouncer", [file], options)
    while !LoopbackPort.accepts(port) {
      guard process.status == nil else { throw SystemError(errno: ECHILD, operation: "pgbouncer") }
      try await Task.sleep(for: .milliseconds(10))
    }
  }

  package func url(database: String) -> String {
    "postgres://\(EmbeddedPostgres.role)@127.0.0.1:\(port)/\(database)"
  }

  package func stop() async {
    process.kill(SIGTERM)
    _ = await process.wait()
    removeTree(directory)
  }
}
