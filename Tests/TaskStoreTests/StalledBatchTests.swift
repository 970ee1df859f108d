import LocalFleet
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// A worker that is frozen while it sends a batch of commands holds locks which every other batch needs.
@Suite struct StalledBatchTests {
  @Test("a batch that nobody goes on sending is ended, and others are applied") func stalled() async throws {
    try await withPostgresStore { store, direct in
      let row = try await direct.query("select current_database()::text, current_user::text")[0]
      let (database, user) = try (row.text(0), row.text(1))
      let server = try await TestPostgres.shared.server()
      let frozen = try RawClient(port: server.port)
      frozen.beginBatch(user: user, database: database)
      _ = frozen.receive { $0.contains("SELECT 1") }

      #expect(try await store.endStalledBatches(silentFor: .seconds(60)) == 0)
      let id = UniqueID.random()
      async let applied = store.apply([.submit(.noop(id, after: [])), .submit(.noop(.random(), after: [id]))])
      try await eventually("the other batch waits") {
        let waiting = "select count(*) from pg_stat_activity where wait_event = 'advisory' and datname = $1"
        return try await direct.query(PostgresStatement(waiting), .text(database)).value { try $0.int64() } == 1
      }
      try await eventually("it is ended") { try await store.endStalledBatches(silentFor: .milliseconds(100)) == 1 }
      #expect(try await applied.count == 2)
      #expect(frozen.receive().contains("terminating connection due to administrator command"))
      #expect(try await store.endStalledBatches(silentFor: .zero) == 0)
    }
  }

  @Test("sessions of others that wait for their client, with locks of their own, stay") func others() async throws {
    try await withPostgresStore { store, direct in
      try await direct.withConnection { other in
        try await other.script("begin; select pg_advisory_xact_lock(1)")
        #expect(try await store.endStalledBatches(silentFor: .zero) == 0)
        try await other.script("commit")
      }
    }
  }
}

extension RawClient {
  /// Sends the first statement of a batch, and keeps the message after it back, as a client does that is frozen.
  fileprivate func beginBatch(user: String, database: String) {
    func message(_ kind: Character?, _ body: [UInt8]) -> [UInt8] {
      let length = withUnsafeBytes(of: UInt32(body.count + 4).bigEndian) { Array($0) }
      return (kind.map { Array("\($0)".utf8) } ?? []) + length + body
    }
    let startup = "user\0\(user)\0database\0\(database)\0\0"
    send(message(nil, [0, 3, 0, 0] + Array(startup.utf8)))
    _ = receive { $0.hasSuffix("Z\0\0\0\u{5}I") }  // ready, and in no transaction
    let parse = Array("\0select begin_apply(true, '{}')\0".utf8) + [0, 0]
    send(message("P", parse) + message("B", [UInt8](repeating: 0, count: 8)) + message("E", [0, 0, 0, 0, 0]))
    send(message("H", []))
  }
}
