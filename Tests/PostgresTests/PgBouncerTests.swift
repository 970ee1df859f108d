import ReelhaulPostgres
import TestKit
import Testing

/// Consecutive transactions of a client run on different server sessions.
struct PgBouncerTests {
  @Test("statements and transactions work through PgBouncer in transaction mode", arguments: [true, false])
  func transactionModeCarriesStatements(prepared: Bool) async throws {
    let server = try await TestPostgres.shared.server()
    let url = try await TestPostgres.shared.database()
    let bouncer = try await PgBouncer(before: server, serverSessions: 2)
    let name = String(url[url.index(after: url.lastIndex(of: "/")!)...])
    let suffix = prepared ? "" : "?prepared_statements=false"
    let configuration = try PostgresConfiguration(url: bouncer.url(database: name) + suffix)
    try await withPool(size: 6, configuration) { pool in
      _ = try await pool.query("CREATE TABLE t (x int)")
      let insert = PostgresStatement("INSERT INTO t VALUES ($1)", writes: true)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<60 {
          group.addTask {
            _ = try await pool.query(insert, .int32(Int32(number)))
            // A named statement inside a transaction needs the same session for the whole transaction.
            if !prepared { try await pool.transaction { _ = try await $0.query(insert, .int32(100)) } }
          }
        }
        try await group.waitForAll()
      }
      #expect(try await pool.query("SELECT count(*) FROM t")[0].int64(0) == (prepared ? 60 : 120))
      try await Migrator(pool, MigratorTests.history).apply()
    }
    await bouncer.stop()
  }
}
