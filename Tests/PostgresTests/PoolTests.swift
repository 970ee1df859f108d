import LocalFleet
import ReelhaulPostgres
import ReelhaulSystem
import TestKit
import Testing

struct PoolTests {
  func configuration(_ url: String, acquireTimeout: Duration) throws -> PostgresConfiguration {
    var configuration = try PostgresConfiguration(url: url)
    configuration.acquireTimeout = acquireTimeout
    return configuration
  }

  @Test("the pool survives a restart of the server")
  func survivesARestartOfTheServer() async throws {
    let server = try await RestartablePostgres()
    try await withPool(size: 3, try configuration(await server.url, acquireTimeout: .seconds(180))) { pool in
      _ = try await pool.query("CREATE TABLE t (x int)")
      let running = Task { await failure { _ = try await pool.query("SELECT pg_sleep(60)") } }
      try await Self.waitForActivity(pool, "SELECT pg_sleep(60)")
      await server.stop(.immediate)
      let error = await running.value
      #expect(error?.code == .connection)
      #expect(error?.isRetryable == true)
      async let waiting = Self.whenBack(pool)
      try await server.start()
      #expect(try await waiting == 0)
    }
    await server.remove()
  }

  /// A cancel request to a server that does not answer never returns.
  @Test("cancel requests to a silent server do not block connections to another one")
  func aSilentServerHoldsUpNoWayToAnother() async throws {
    let server = try await TestPostgres.shared.server()
    let proxy = try CuttingProxy(to: UInt16(server.port))
    var configuration = try configuration(
      server.url().replacing(":\(server.port)", with: ":\(proxy.port)"), acquireTimeout: .seconds(20))
    configuration.statementTimeout = .seconds(1)
    let silent = configuration
    try await withPool(size: 3, silent) { pool in
      try await Self.three(pool, timeout: .seconds(60)) { #expect($0 == nil) }
      proxy.setSilent(true)
      try await Self.three(pool) { #expect($0?.code == .timeout) }
      proxy.strand()
      #expect(try await pool.query("SELECT 1", timeout: .seconds(60)).count == 1)
    }
    // The pool has closed; its cancel requests are still under way.
    proxy.close()
  }

  @Test("a first server that does not answer keeps nobody from the second")
  func theSecondServerAnswers() async throws {
    let server = try await TestPostgres.shared.server()
    let proxy = try CuttingProxy(to: UInt16(server.port))
    proxy.setSilent(true)
    let url = server.url().replacing(
      "127.0.0.1:\(server.port)", with: "127.0.0.1:\(proxy.port),127.0.0.1:\(server.port)")
    #expect(url.contains(",127"), "\(url)")
    var configuration = try configuration(url + "?target_session_attrs=read-write", acquireTimeout: .seconds(20))
    // Longer than the patience of the caller, who is kept no longer than his share for each server.
    configuration.connectTimeout = .seconds(3600)
    try await withPool(size: 2, configuration) { pool in
      try await pool.withConnection { _ in
        // Another connection begins with the server that has answered.
        let took = try await ContinuousClock().measure { _ = try await pool.query("SELECT 1") }
        #expect(took < .seconds(9))
      }
    }
    proxy.strand()
    proxy.close()
  }

  @Test("nor where both are known from the file of a service alone")
  func theSecondServerOfAServiceAnswers() async throws {
    let server = try await TestPostgres.shared.server()
    let proxy = try CuttingProxy(to: UInt16(server.port))
    proxy.setSilent(true)
    let file =
      "[films]\nhostaddr=127.0.0.1,127.0.0.1\nport=\(proxy.port),\(server.port)\nuser=\(EmbeddedPostgres.role)\ndbname=postgres\n"
    try await withServices(file) {
      let films = try configuration("postgres:///?service=films", acquireTimeout: .seconds(20))
      try await withPool(size: 1, films) { pool in
        let count = try await pool.query("SELECT 1").count
        #expect(count == 1)
      }
    }
    proxy.strand()
    proxy.close()
  }

  @Test("the error for a server that does not answer names this server")
  func aSilentServerIsNamed() async throws {
    let proxy = try CuttingProxy(to: UInt16(try await TestPostgres.shared.server().port))
    proxy.setSilent(true)
    let refusing = try LoopbackPort.free()
    let url = "postgres://nobody@127.0.0.1:\(refusing),127.0.0.1:\(proxy.port)/none"
    var configuration = try configuration(url, acquireTimeout: .milliseconds(50))
    configuration.connectTimeout = .milliseconds(20)
    try await withPool(size: 1, configuration) { pool in
      var message = ""
      try await eventually("an attempt has failed") {
        let error = await failure { _ = try await pool.query("SELECT 1") }
        message = error?.message ?? ""
        return error?.code != .timeout
      }
      #expect(message.hasPrefix("no answer from 127.0.0.1:\(proxy.port)/none"), "\(message)")
    }
    proxy.strand()
    proxy.close()
  }

  private static func three(
    _ pool: PostgresPool, timeout: Duration? = nil, _ check: @escaping @Sendable (PostgresError?) -> Void
  ) async throws {
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<3 {
        group.addTask {
          check(await failure { _ = try await pool.query("SELECT pg_sleep(0.2)", timeout: timeout) })
        }
      }
    }
  }

  @Test("closing the pool ends, whenever its connections come back", .timeLimit(.minutes(10)))
  func itsEndMissesNoConnection() async throws {
    let configuration = try PostgresConfiguration.patient(url: try await TestPostgres.shared.database())
    let loop = EventLoop(name: "test")
    for _ in 0..<200 {
      let pool = PostgresPool(loop: loop, configuration: configuration, size: 1)
      _ = try await pool.query("SELECT 1")
      let calls = (0..<3).map { _ in loop.task { _ = try? await pool.query("SELECT 1") } }
      if Bool.random() { await Task.yield() }
      await pool.close()
      for call in calls { _ = await call.result }
    }
    await Task.detached { loop.shutdown() }.value
  }

  @Test("closing the pool ends running calls without waiting for the server")
  func itsEndWaitsForNoAnswer() async throws {
    let call = Lock<Task<PostgresError?, Never>?>(nil)
    try await withPool { pool in
      let running = Task { await failure { _ = try await pool.query("SELECT pg_sleep(600)") } }
      call.withLock { $0 = running }
      try await Self.waitForActivity(pool, "SELECT pg_sleep(600)")
    }
    #expect(await call.withLock { $0 }?.value?.code == .connection)
  }

  @Test("a pool that gives up its connections fails running calls, and makes new connections")
  func reconnects() async throws {
    try await withPool(size: 3) { pool in
      let running = Task { await failure { _ = try await pool.query("SELECT pg_sleep(600)") } }
      try await Self.waitForActivity(pool, "SELECT pg_sleep(600)")
      let idle = try await pool.query("SELECT pg_backend_pid()")[0].int32(0)
      await pool.reconnect()
      #expect(await running.value?.code == .connection)
      for _ in 0..<3 { #expect(try await pool.query("SELECT pg_backend_pid()")[0].int32(0) != idle) }
    }
  }

  @Test("the error for an unreachable server names its address and the reason")
  func anUnreachableServerIsNamed() async throws {
    let port = try LoopbackPort.free()
    let nowhere = try configuration("postgres://nobody@127.0.0.1:\(port)/none", acquireTimeout: .milliseconds(50))
    try await withPool(nowhere) { pool in
      // Before an attempt has failed, a caller only knows that it got no connection.
      var error: PostgresError?
      try await eventually("an attempt has failed") {
        error = await failure { _ = try await pool.query("SELECT 1") }
        return error?.code != .timeout
      }
      #expect(error?.code == .connection)
      #expect(error?.isRetryable == true)
      #expect(error?.message.contains("\(port)") == true)
      #expect(error?.message.contains("refused") == true)
    }
  }

  /// Long before the waiting callers time out.
  @Test("a failed attempt to connect is reported at once")
  func attemptsToConnectAreToldAtOnce() async throws {
    let port = try LoopbackPort.free()
    let nowhere = try configuration("postgres://nobody@127.0.0.1:\(port)/none", acquireTimeout: .seconds(3600))
    let loop = EventLoop(name: "test")
    let (attempts, told) = AsyncStream.makeStream(of: PostgresError?.self)
    let pool = PostgresPool(loop: loop, configuration: nowhere, size: 2, onConnect: { told.yield($0) })
    let waiting = Task { await failure { _ = try await pool.query("SELECT 1") } }
    for await attempt in attempts {
      #expect(attempt?.message.contains("\(port)") == true)
      break
    }
    waiting.cancel()
    #expect(await waiting.value?.code == .canceled)
    await pool.close()
    loop.shutdown()
  }

  @Test("a database that does not exist fails at once and is not retried")
  func aRefusedDatabaseFailsAtOnceAndIsNotRetried() async throws {
    let url = try await TestPostgres.shared.server().url(database: "no_such_database")
    try await withPool(try configuration(url, acquireTimeout: .seconds(3600))) { pool in
      let error = await failure { _ = try await pool.query("SELECT 1") }
      #expect(error?.sqlState == "3D000")
      #expect(error?.message.contains("no_such_database") == true)
      #expect(error?.isRetryable == false)
    }
  }

  @Test("a caller that waits too long for a connection gets a timeout")
  func waitingForAConnectionTimesOut() async throws {
    let url = try await TestPostgres.shared.database()
    try await withPool(size: 1, try configuration(url, acquireTimeout: .milliseconds(200))) { pool in
      try await Self.connect(pool)
      try await pool.withConnection { _ in
        let error = await failure { _ = try await pool.query("SELECT 1") }
        #expect(error?.code == .timeout)
      }
      _ = try await pool.query("SELECT 1")
    }
  }

  @Test("a canceled caller leaves the queue")
  func aCanceledWaiterLeavesTheQueue() async throws {
    try await withPool(size: 1) { pool in
      try await pool.withConnection { connection in
        let waiter = Task { await failure { _ = try await pool.query("SELECT 1") } }
        waiter.cancel()
        #expect(await waiter.value?.code == .canceled)
        _ = try await connection.query("SELECT 1")
      }
      _ = try await pool.query("SELECT 1")
    }
  }

  @Test("canceling a statement stops it on the server and keeps the session")
  func aCanceledStatementStopsOnTheServerAndKeepsTheSession() async throws {
    try await withPool(size: 2) { pool in
      try await pool.withConnection { connection in
        let pid = try await connection.query("SELECT pg_backend_pid()")[0].int32(0)
        let running = Task { await failure { _ = try await connection.query("SELECT pg_sleep(61)") } }
        try await Self.waitForActivity(pool, "SELECT pg_sleep(61)")
        running.cancel()
        #expect(await running.value?.code == .canceled)
        #expect(try await connection.query("SELECT pg_backend_pid()")[0].int32(0) == pid)
      }
    }
  }

  @Test("a statement past its deadline is canceled, and the session goes on")
  func aStatementPastItsDeadlineIsCanceled() async throws {
    try await withPool(size: 1) { pool in
      try await pool.withConnection { connection in
        let pid = try await connection.query("SELECT pg_backend_pid()")[0].int32(0)
        let error = await failure { _ = try await connection.query("SELECT pg_sleep(60)", timeout: .seconds(1)) }
        #expect(error?.code == .timeout)
        #expect(error?.isRetryable == true)
        #expect(try await connection.query("SELECT pg_backend_pid()")[0].int32(0) == pid)
      }
      let pid = try await pool.query("SELECT pg_backend_pid()")[0].int32(0)
      _ = await failure { _ = try await pool.query("SELECT pg_sleep(60)", timeout: .seconds(1)) }
      #expect(try await pool.query("SELECT pg_backend_pid()")[0].int32(0) == pid)
    }
  }

  @Test(
    "a session that began with a wrong setting is not lent again after its error",
    arguments: [
      ("default_transaction_read_only = on", "25006"), ("search_path = nowhere", "42P01"),
      ("statement_timeout = '1ms'", "57014"),
    ]) func aWrongSettingEndsWithItsSession(setting: String, state: String) async throws
  {
    try await withPool(size: 1) { pool in
      _ = try await pool.query("CREATE TABLE t (x int)")
      let session = try await pool.query("SELECT current_database()::text, pg_backend_pid()")[0]
      let (name, pid) = (try session.text(0), try session.int32(1))
      let write: PostgresStatement = "INSERT INTO t SELECT 1 FROM pg_sleep(0.1)"
      try await TestPostgres.shared.asSuperuser { other in
        try await other.script("ALTER DATABASE \(name) SET \(setting)")
        _ = try await other.query("SELECT pg_terminate_backend($1, 10000)", .int32(pid))
      }
      #expect(await failure { _ = try await pool.query(write) }?.sqlState == state)
      try await TestPostgres.shared.asSuperuser { try await $0.script("ALTER DATABASE \(name) RESET ALL") }
      _ = try await pool.query(write)
    }
  }

  @Test("an idle connection that dies is replaced without an error")
  func anIdleConnectionThatDiesIsReplacedUnseen() async throws {
    try await withPool(size: 1) { pool in
      let database = try await pool.query("SELECT current_database()::text, pg_backend_pid()")[0]
      let (name, pid) = (try database.text(0), try database.int32(1))
      let same = try PostgresConfiguration(url: try await TestPostgres.shared.server().url(database: name))
      try await withPool(size: 1, same) { other in
        _ = try await other.query("SELECT pg_terminate_backend($1, 10000)", .int32(pid))
      }
      #expect(try await pool.query("SELECT pg_backend_pid()")[0].int32(0) != pid)
    }
  }

  @Test("a connection that comes back with an open transaction is not lent again")
  func aConnectionGivenBackInATransactionIsNotLentAgain() async throws {
    try await withPool(size: 1) { pool in
      let pid = try await pool.withConnection { connection in
        _ = try await connection.query("BEGIN")
        return try await connection.query("SELECT pg_backend_pid()")[0].int32(0)
      }
      #expect(try await pool.query("SELECT pg_backend_pid()")[0].int32(0) != pid)
    }
  }

  @Test("a prepared plan that no longer fits its table is prepared again")
  func aPlanThatNoLongerFitsIsMadeAnew() async throws {
    try await withPool(size: 1) { pool in
      let all: PostgresStatement = "SELECT * FROM t"
      _ = try await pool.query("CREATE TABLE t AS SELECT 1 AS x")
      #expect(try await pool.query(all)[0].int32(0) == 1)
      _ = try await pool.query("ALTER TABLE t ADD y int DEFAULT 2")
      #expect(try await pool.query(all)[0].int32(1) == 2)
      _ = try await pool.query("DEALLOCATE ALL")
      #expect(try await pool.query(all)[0].int32(1) == 2)
    }
  }

  /// Waits until a connection is open, even if callers time out meanwhile.
  static func connect(_ pool: PostgresPool) async throws {
    try await eventually("there is a connection") { (try? await pool.query("SELECT 1")) != nil }
  }

  /// The number of rows, once the server answers again. A connection whose loss was not noticed yet fails, and the
  /// call is repeated.
  private static func whenBack(_ pool: PostgresPool) async throws -> Int64 {
    while true {
      do {
        return try await pool.query("SELECT count(*) FROM t")[0].int64(0)
      } catch {
        guard error.isRetryable else { throw error }
      }
    }
  }

  /// Waits until the server runs `sql`.
  static func waitForActivity(_ pool: PostgresPool, _ sql: String) async throws {
    let statement: PostgresStatement =
      "SELECT count(*) FROM pg_stat_activity WHERE query = $1 AND state = 'active' AND pid <> pg_backend_pid()"
    while try await pool.query(statement, .text(sql))[0].int64(0) == 0 { await Task.yield() }
  }
}
