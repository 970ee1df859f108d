import LocalFleet
import ReelhaulPostgres
import ReelhaulSystem
import TestKit
import Testing

/// The results of transactions whose connection is lost around a COMMIT.
struct CommitTests {
  /// The text on the wire. It must not match BEGIN ISOLATION LEVEL READ COMMITTED.
  static let commit = "COMMIT\0"
  static let insert = PostgresStatement("INSERT INTO t VALUES ($1)", writes: true)

  /// A pool behind a proxy, and a direct pool that shows the real state.
  func withProxy(
    commitResolution: Duration = .seconds(30), acquireTimeout: Duration = .seconds(30),
    _ body: @escaping @Sendable (_ cut: PostgresPool, _ direct: PostgresPool, CuttingProxy) async throws -> Void
  ) async throws {
    let url = try await TestPostgres.shared.database()
    let port = try await TestPostgres.shared.server().port
    let proxy = try CuttingProxy(to: UInt16(port))
    defer { proxy.close() }
    var cut = try PostgresConfiguration(url: url.replacing(":\(port)/", with: ":\(proxy.port)/"))
    cut.commitResolution = commitResolution
    cut.acquireTimeout = acquireTimeout
    try await withPool(cut) { pool in
      try await withPool(try PostgresConfiguration(url: url)) { direct in
        _ = try await direct.query("CREATE TABLE t (x int)")
        try await body(pool, direct, proxy)
      }
    }
  }

  @Test("a commit whose answer is lost is reported as applied")
  func aCommitWhoseAnswerIsLostWasApplied() async throws {
    try await withProxy { pool, direct, proxy in
      proxy.cut(.after, when: Self.commit)
      let result = try await pool.transaction { transaction in
        _ = try await transaction.query(Self.insert, .int32(1))
        return "done"
      }
      #expect(result == "done")
      #expect(try await direct.query("SELECT count(*) FROM t")[0].int64(0) == 1)
    }
  }

  @Test("a commit that never arrived is reported as not applied")
  func aCommitThatNeverArrivedWasNotApplied() async throws {
    try await withProxy { pool, direct, proxy in
      proxy.cut(.before, when: Self.commit)
      let error = await failure {
        try await pool.transaction { _ = try await $0.query(Self.insert, .int32(1)) }
      }
      #expect(error?.code == .connection)
      #expect(error?.isRetryable == true)
      #expect(try await direct.query("SELECT count(*) FROM t")[0].int64(0) == 0)
      try await pool.transaction { _ = try await $0.query(Self.insert, .int32(2)) }
      #expect(try await direct.query("SELECT x FROM t")[0].int32(0) == 2)
    }
  }

  @Test("a commit that still runs after its connection is lost is awaited")
  func aCommitThatIsStillRunningIsWaitedFor() async throws {
    try await withProxy { pool, direct, proxy in
      _ = try await direct.withConnection {
        try await $0.script(
          """
          CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END';
          CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION slow();
          """)
      }
      proxy.cut(.after, when: Self.commit)
      try await pool.transaction { _ = try await $0.query(Self.insert, .int32(1)) }
      #expect(try await direct.query("SELECT count(*) FROM t")[0].int64(0) == 1)
    }
  }

  @Test("a server process that is terminated during a commit has not applied it")
  func aBackendTerminatedInCommitDidNotApply() async throws {
    try await withPool { pool in
      _ = try await pool.withConnection {
        try await $0.script(
          """
          CREATE TABLE t (x int);
          CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql
            AS 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); RETURN NULL; END';
          CREATE CONSTRAINT TRIGGER die AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION die();
          """)
      }
      let error = await failure { try await pool.transaction { _ = try await $0.query(Self.insert, .int32(1)) } }
      #expect(error?.code == .connection)
      #expect(error?.sqlState == "57P01")
      #expect(try await pool.query("SELECT count(*) FROM t")[0].int64(0) == 0)
    }
  }

  @Test("if no server answers after a lost commit, the outcome is unknown")
  func withNobodyToAskTheOutcomeIsUnknown() async throws {
    try await withProxy(commitResolution: .milliseconds(300), acquireTimeout: .seconds(2)) { pool, _, proxy in
      try await PoolTests.connect(pool)
      proxy.cut(.after, when: Self.commit, thenRefuse: true)
      let error = await failure {
        try await pool.transaction { _ = try await $0.query(Self.insert, .int32(1)) }
      }
      #expect(error?.code == .commitUnknown)
      #expect(error?.isRetryable == false)
    }
  }

  @Test("a single write without an answer has an unknown outcome, and a read can be repeated")
  func anAutocommittedWriteThatGotNoAnswerIsUnknownAndAReadIsNot() async throws {
    try await withProxy { pool, direct, proxy in
      proxy.cut(.after, when: "INSERT")
      let write = await failure { _ = try await pool.query(Self.insert, .int32(1)) }
      #expect(write?.code == .commitUnknown)
      proxy.cut(.before, when: "SELECT 77")
      let read = await failure { _ = try await pool.query("SELECT 77") }
      #expect(read?.code == .connection)
      #expect(read?.isRetryable == true)
      let next = try await pool.query("SELECT 78")
      #expect(try next[0].int32(0) == 78)
    }
  }

  @Test("a connection lost within a transaction means that nothing was applied")
  func aConnectionLostInATransactionMeansNotApplied() async throws {
    try await withProxy { pool, direct, proxy in
      proxy.cut(.after, when: "INSERT")
      let error = await failure {
        try await pool.transaction { _ = try await $0.query(Self.insert, .int32(1)) }
      }
      #expect(error?.code == .connection)
      let rows = try await direct.query("SELECT count(*) FROM t")
      #expect(try rows[0].int64(0) == 0)
    }
  }
}
