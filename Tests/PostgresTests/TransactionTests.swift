import ReelhaulPostgres
import Testing

struct TransactionTests {
  struct Refused: Error {}

  @Test func commitsWhatItsBodyDid() async throws {
    try await withPool { pool in
      _ = try await pool.query("CREATE TABLE t (x int)")
      let seen = try await pool.transaction { transaction in
        _ = try await transaction.query("INSERT INTO t VALUES ($1)", .int32(1))
        return try await transaction.query("SELECT count(*) FROM t")[0].int64(0)
      }
      #expect(seen == 1)
      #expect(try await pool.query("SELECT count(*) FROM t")[0].int64(0) == 1)
    }
  }

  @Test func rollsBackWhenItsBodyThrows() async throws {
    try await withPool(size: 1) { pool in
      _ = try await pool.query("CREATE TABLE t (x int)")
      await #expect(throws: Refused.self) {
        try await pool.transaction { transaction in
          _ = try await transaction.query("INSERT INTO t VALUES (1)")
          throw Refused()
        }
      }
      #expect(try await pool.query("SELECT count(*) FROM t")[0].int64(0) == 0)
    }
  }

  @Test func aFailedStatementThatIsSwallowedStillFailsTheCommit() async throws {
    try await withPool(size: 1) { pool in
      _ = try await pool.query("CREATE TABLE t (x int)")
      let error = await failure {
        try await pool.transaction { transaction in
          _ = try await transaction.query("INSERT INTO t VALUES (1)")
          _ = try? await transaction.query("SELECT 1 / 0")
        }
      }
      #expect(error?.code == .server)
      #expect(try await pool.query("SELECT count(*) FROM t")[0].int64(0) == 0)
    }
  }

  @Test func aTransactionThatDoesNothingIsNoTransaction() async throws {
    try await withPool { pool in
      let five = try await pool.transaction { _ in 5 }
      #expect(five == 5)
    }
  }

  @Test func theIsolationLevelIsTheOneAskedFor() async throws {
    try await withPool { pool in
      let level = try await pool.transaction(level: .repeatableRead) { transaction in
        try await transaction.query("SHOW transaction_isolation")[0].text(0)
      }
      #expect(level == "repeatable read")
    }
  }
}
