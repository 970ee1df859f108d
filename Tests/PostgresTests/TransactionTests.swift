import ReelhaulPostgres
import TestKit
import Testing

struct TransactionTests {
  struct Refused: Error {}

  @Test("a transaction commits the work of its body")
  func commitsWhatItsBodyDid() async throws {
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

  @Test("a transaction is rolled back if its body throws")
  func rollsBackWhenItsBodyThrows() async throws {
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

  @Test("a failed statement whose error is ignored still fails the commit")
  func aFailedStatementThatIsSwallowedStillFailsTheCommit() async throws {
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

  @Test("a transaction without statements returns the result of its body")
  func aTransactionThatDoesNothingIsNoTransaction() async throws {
    try await withPool { pool in
      let five = try await pool.transaction { _ in 5 }
      #expect(five == 5)
    }
  }

  @Test("a transaction has the requested isolation level")
  func theIsolationLevelIsTheOneAskedFor() async throws {
    try await withPool { pool in
      let level = try await pool.transaction(level: .repeatableRead) { transaction in
        try await transaction.query("SHOW transaction_isolation")[0].text(0)
      }
      #expect(level == "repeatable read")
    }
  }
}
