import Glibc
import ReelhaulPostgres
import ReelhaulSystem
import TestKit
import Testing

@testable import LocalFleet

struct EmbeddedPostgresTests {
  func withServer(
    _ body: (_ directory: String, EmbeddedPostgres) async throws -> Void
  ) async throws {
    let base = try TemporaryDirectory(prefix: "reelhaul-embedded")
    chmod(base.path, 0o755)
    let directory = "\(base.path)/fleet/postgres"
    let server = try await EmbeddedPostgres.start(directory: directory, port: LoopbackPort.free())
    do {
      try await body(directory, server)
    } catch {
      await server.stop(.immediate)
      throw error
    }
    await server.stop(.immediate)
    withExtendedLifetime(base) {}
  }

  func query(_ url: String, _ sql: String) async throws -> String {
    let loop = EventLoop(name: "embedded-test")
    let pool = PostgresPool(loop: loop, configuration: try PostgresConfiguration(url: url), size: 1)
    let result = await loop.task { try await pool.query(PostgresStatement(sql))[0].text(0) }.result
    await pool.close()
    loop.shutdown()
    return try result.get()
  }

  @Test("a private PostgreSQL starts with its database and requires its password")
  func startsWithItsDatabaseAndAPassword() async throws {
    try await withServer { directory, server in
      #expect(try await query(server.url(), "SELECT current_database()::text") == "reelhaul")
      let socket = try #require(server.socketURL())
      #expect(try await query(socket, "SELECT current_user::text") == "reelhaul")
      #expect(try await query(server.url(), "SHOW autovacuum_naptime") == "2s")
      for name in ["fsync", "full_page_writes", "synchronous_commit"] {
        #expect(try await query(server.url(), "SHOW \(name)") == "on", "\(name)")
      }
      await #expect(throws: PostgresError.self) {
        _ = try await query("postgres://reelhaul:wrong@127.0.0.1:\(server.port)/reelhaul", "SELECT 'x'")
      }
      var status = stat()
      #expect(stat("\(directory)/password", &status) == 0 && status.st_mode & 0o077 == 0)
    }
  }

  @Test("a private PostgreSQL keeps committed data after a crash")
  func goesOnWhereItWasAfterACrash() async throws {
    try await withServer { directory, server in
      // A large object is the only thing that a SELECT can create.
      let made = try await query(server.url(), "SELECT lo_from_bytea(0, 'kept')::text")
      server.stopBlocking(.immediate)
      #expect(!server.isRunning)
      let again = try await EmbeddedPostgres.start(directory: directory)
      #expect(try await query(again.url(), "SELECT convert_from(lo_get(\(made)), 'UTF8')") == "kept")
      await again.stop()
    }
  }

  @Test("a killed PostgreSQL is started again on its port")
  func isStartedAgainOnItsPortWhenItIsKilled() async throws {
    try await withServer { directory, server in
      let said = Lock<[String]>([])
      let slot = ProcessSlot(
        server, name: "PostgreSQL", logFile: server.logFile, say: { sentence in said.withLock { $0.append(sentence) } },
        restart: { try await EmbeddedPostgres.start(directory: directory, port: server.port) })
      #expect(kill(server.pid, SIGKILL) == 0)
      try await eventually("another server runs") { slot.process !== server }
      #expect(try await query(server.url(), "SELECT current_database()::text") == "reelhaul")
      await slot.stop { await $0.stop() }
      #expect(!slot.process.isRunning)
      #expect(said.withLock { $0 }.contains { $0.contains("signal 9") })
    }
  }

  /// After a container's restart the process id in the file may belong to another program.
  @Test("a pid file that names another process does not prevent a start")
  func aPidFileThatNamesAnotherProcessIsRemoved() async throws {
    try await withServer { directory, server in
      await server.stop()
      let file = try FileDescriptor.open("\(directory)/data/postmaster.pid", O_WRONLY | O_CREAT | O_CLOEXEC)
      var text = "\(getpid())\n\(directory)/data\n"
      try text.withUTF8 { try file.write(UnsafeRawBufferPointer($0), at: 0) }
      let again = try await EmbeddedPostgres.start(directory: directory)
      #expect(again.isRunning)
      await again.stop()
    }
  }

  @Test("a missing installation is reported with its package")
  func anInstallationThatIsMissingIsNamed() {
    #expect(throws: LocalFleetError.self) { try PostgresInstallation.find(in: "/nonexistent") }
    let error = #expect(throws: LocalFleetError.self) { try PostgresInstallation.find(major: 99) }
    #expect(error?.description.contains("postgresql-99") == true)
  }

  @Test("the pid file tells the process and whether the server is ready")
  func thePidFileIsRead() {
    #expect(PostmasterFile("") == nil)
    #expect(PostmasterFile("x\n") == nil)
    #expect(PostmasterFile("12\n/d\n1\n5432\n/s\n127.0.0.1\n 1 2\nstarting\n")?.isReady == false)
    let ready = PostmasterFile("12\n/d\n1\n5432\n/s\n127.0.0.1\n 1 2\nready   \n")
    #expect(ready?.isReady == true)
    #expect(ready?.pid == 12)
    #expect(PostmasterFile("\(getpid())\n")?.isRunning(on: "/nonexistent") == false)
  }
}
