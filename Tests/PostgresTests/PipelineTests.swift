import ReelhaulPostgres
import TestKit
import Testing

struct PipelineTests {
  @Test("the answers of a pipeline come in order")
  func answersComeInOrder() async throws {
    try await withPool { pool in
      let double: PostgresStatement = "SELECT $1 * 2"
      let answers = try await pool.pipeline((0..<1000).map { double(.int32($0)) })
      #expect(try answers.map { try $0[0].int32(0) } == (0..<1000).map { $0 * 2 })
    }
  }

  @Test("an error undoes the whole pipeline and names its statement")
  func anErrorMidwayUndoesTheWholeAndNamesTheStatement() async throws {
    try await withPool(size: 1) { pool in
      _ = try await pool.query("CREATE TABLE t (x int CONSTRAINT small CHECK (x < 3))")
      let insert = PostgresStatement("INSERT INTO t VALUES ($1)", writes: true)
      let error = await failure { _ = try await pool.pipeline((0..<10).map { insert(.int32($0)) }) }
      #expect(error?.code == .server)
      #expect(error?.sqlState == "23514")
      #expect(error?.constraint == "small")
      #expect(error?.statementIndex == 3)
      #expect(error?.isRetryable == false)
      #expect(try await pool.query("SELECT count(*) FROM t")[0].int64(0) == 0)
      _ = try await pool.pipeline([insert(.int32(1)), insert(.int32(2))])
      #expect(try await pool.query("SELECT count(*) FROM t")[0].int64(0) == 2)
    }
  }

  /// More than the buffers of both sockets hold: a client that only writes would wait for a server that only writes.
  @Test("a pipeline larger than the socket buffers does not block")
  func bigPipelinesDoNotLockUp() async throws {
    try await withPool { pool in
      let echo: PostgresStatement = "SELECT $1 || $1"
      let text = String(repeating: "x", count: 100_000)
      let answers = try await pool.pipeline((0..<100).map { _ in echo(.text(text)) })
      #expect(try answers.allSatisfy { try $0[0].text(0).utf8.count == 200_000 })
    }
  }

  /// The next request begins while the replies to the one before it are read.
  @Test("a request larger than the socket buffers is sent to its end, also again or after another one")
  func bigRequestsAreSentToTheirEnd() async throws {
    try await withPool(size: 1) { pool in
      let size: PostgresStatement = "SELECT length($1)"
      let text = PostgresValue.text(String(repeating: "x", count: 30_000_000))
      _ = try await pool.query(size, .text(""))
      _ = try await pool.query("DEALLOCATE ALL")
      #expect(try await pool.query(size, text, timeout: .seconds(20))[0].int32(0) == 30_000_000)
      try await pool.withConnection { connection in
        async let first = connection.query("SELECT 1 FROM pg_sleep(0.1)")
        async let second = connection.query(size, text, timeout: .seconds(20))
        let rows = try await [first, second]
        #expect(try rows[1][0].int32(0) == 30_000_000)
      }
    }
  }

  @Test("a syntax error is an error of the server, and the session goes on")
  func aStatementThatDoesNotParseIsAnErrorOfTheServer() async throws {
    try await withPool(size: 1) { pool in
      let error = await failure { _ = try await pool.query("SELEKT 1") }
      #expect(error?.sqlState == "42601")
      let rows = try await pool.query("SELECT 1")
      #expect(try rows[0].int32(0) == 1)
    }
  }

  @Test("several tasks share one connection")
  func severalTasksShareOneConnection() async throws {
    try await withPool(size: 1) { pool in
      try await pool.withConnection { connection in
        let sum = try await withThrowingTaskGroup(of: Int32.self) { group in
          for number in 0..<50 {
            group.addTask { try await connection.query("SELECT $1", .int32(Int32(number)))[0].int32(0) }
          }
          return try await group.reduce(0, +)
        }
        #expect(sum == 1225)
      }
    }
  }

  @Test("a script runs several statements, all or nothing")
  func scriptsRunSeveralStatements() async throws {
    try await withPool(size: 1) { pool in
      _ = try await pool.withConnection { try await $0.script("CREATE TABLE a (x int); INSERT INTO a VALUES (1), (2)") }
      #expect(try await pool.query("SELECT count(*) FROM a")[0].int64(0) == 2)
      let error = await failure {
        _ = try await pool.withConnection { try await $0.script("INSERT INTO a VALUES (3); SELECT 1 / 0") }
      }
      #expect(error?.sqlState == "22012")
      #expect(try await pool.query("SELECT count(*) FROM a")[0].int64(0) == 2)
    }
  }
}
