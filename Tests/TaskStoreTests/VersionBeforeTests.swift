import ReelhaulPostgres
import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine

/// Workers of the version before work at the same time as workers of this one. The tests run their exact statements
/// against this version's schema.
@Suite struct VersionBeforeTests {
  @Test("a worker of the version before registers, and reads the history it knows")
  func register() async throws {
    try await withPostgresStore { _, pool in
      let history = try await pool.query("SELECT number, name, checksum FROM schema_migration ORDER BY number")
      #expect(history.count == 1)
      #expect(try history[0].int64(0) == 1)
      #expect(try history[0].text(1) == "schema")
      #expect(try history[0].int64(2) == 1_248_641_941_136_920_980)
      let boot = UniqueID.random()
      let worker = try await Before.register(boot, pool)
      #expect(try await Before.register(boot, pool) == worker)
    }
  }

  @Test("a checkpoint of the version before is read by this one, and the reverse")
  func checkpoints() async throws {
    try await withPostgresStore { store, pool in
      var task = TaskSpec.noop(destination: "storage://default/a.mp4")
      task.kind = .download
      #expect(try await Before.submit(task, pool) == [task.id])
      let old = try await Before.register(.random(), pool)
      #expect(try await Before.claim(old, pool) == [task.id])
      let none = try await Before.claimed([task.id], pool)[0]
      for column in 5...11 { #expect(try none[PostgresColumn(testing: column)] == nil) }
      #expect(try await Before.record(task.id, epoch: 1, [0..<4096, 8192..<9000], pool) == [true])
      #expect(try await Before.record(task.id, epoch: 2, [], pool) == [false])
      #expect(try await Before.settle(task.id, epoch: 1, "released", pool) == [true])

      let new = try await store.register(.downloads)
      let claim = try #require(try await store.claim(new, limit: 1).first)
      var point = try DownloadCheckpoint(try #require(claim.checkpoint))
      #expect(point.done.ranges == [0..<4096, 8192..<9000] && point.generation == 3 && point.tailCRC == 77)
      #expect(point.identity.finalURL == "https://example.com/a" && point.identity.size == 9000)
      #expect(point.envelope == claim.checkpoint)
      point.done.insert(4096..<5000)
      point.publishing = .init(sha256: Array(repeating: 0xAB, count: 32))
      let write = CheckpointWrite(taskID: task.id, epoch: 2, checkpoint: point.envelope)
      #expect(try await store.checkpoint([write]) == [true])
      #expect(try await store.settle([Settlement(taskID: task.id, epoch: 2, outcome: .handBack)]) == [true])

      #expect(try await Before.claim(old, call: 2, pool) == [task.id])
      let row = try await Before.claimed([task.id], pool)[0]
      #expect(try row.int32(1) == 3)
      #expect(try row.int32(5) == 3)
      #expect(try row.text(6).contains(#""size":9000"#))
      #expect(try row.text(8) == "a.3")
      #expect(UniqueID(high: try row.uuid(7).high, low: try row.uuid(7).low) == .volume)
      #expect(try row.text(9) == "{[0,5000),[8192,9000)}")
      #expect(try row.int64(10) == 77)
      #expect(try row.bytes(11) == Array(repeating: 0xAB, count: 32))
      #expect(try await Before.record(task.id, epoch: 3, [0..<9000], publishing: true, pool) == [true])
      #expect(try await store.task(task.id)?.state == .publishing)
      #expect(try await Before.settle(task.id, epoch: 3, "succeeded", pool) == [true])
      let end = try #require(try await store.task(task.id))
      #expect(end.state == .succeeded && end.bytesDone == 9000 && end.output == nil)
    }
  }

  @Test("lists and gauges of the version before go on") func reading() async throws {
    try await withPostgresStore { store, pool in
      let specs = (0..<3).map { TaskSpec.noop(queue: $0 == 0 ? "a" : "b") }
      for spec in specs { _ = try await store.apply([.submit(spec)]) }
      _ = try await store.apply([.control(.init(id: .random(), taskID: specs[1].id, action: .pause))])
      for (state, queue, found) in [
        (nil, nil, [2, 1, 0]), ("queued", nil, [2, 0]), ("paused", "b", [1]), (nil, "a", [0]), ("failed", nil, []),
      ] as [(String?, String?, [Int])] {
        let ids = try await pool.query("select id from list_tasks($1, $2, 100)", .text(state), .text(queue)).values {
          let id = try $0.uuid()
          return UniqueID(high: id.high, low: id.low)
        }
        #expect(ids == found.map { specs[$0].id })
      }
      let others = try await pool.query("select state, queue, tasks from other_tasks(10000)")
      #expect(others.count == 1)
      #expect(try others[0].text(0) == "paused" && others[0].text(1) == "b" && others[0].int64(2) == 1)
    }
  }

  @Test("what is recorded of another kind is never read as that of a download")
  func checkpointOfAnotherKind() async throws {
    try await withPostgresStore { store, pool in
      let task = TaskSpec.noop()
      #expect(try await Before.submit(task, pool) == [task.id])
      let worker = try await store.register(.downloads)
      for epoch in 1...2 {
        let claim = try #require(try await store.claim(worker, limit: 1).first)
        #expect(claim.checkpoint?.version == (epoch == 1 ? nil : 3))
        let payload = #"{"identity":1,"volume":"a","done":true,"tailCRC":"b","publishing":true}"#
        let checkpoint = Checkpoint(version: 3, generation: 0, payload: Array(payload.utf8))
        let write = CheckpointWrite(taskID: task.id, epoch: epoch, checkpoint: checkpoint)
        #expect(try await store.checkpoint([write]) == [true])
        #expect(try await store.settle([Settlement(taskID: task.id, epoch: epoch, outcome: .handBack)]) == [true])
      }
    }
  }

  @Test("commands of the version before are carried out")
  func commands() async throws {
    try await withPostgresStore { store, pool in
      let task = TaskSpec.noop()
      let added = try await Before.submit(task, pool)
      #expect(added == [task.id])
      let steps: [(String, TaskState)] = [
        ("pause", .paused), ("resume", .queued), ("cancel", .canceled), ("retry", .queued),
      ]
      for (action, state) in steps {
        #expect(try await Before.control(task.id, action, pool) == "applied", "\(action)")
        #expect(try await store.task(task.id)?.state == state)
      }
      #expect(try await Before.control(task.id, "remove", pool) == "applied")
      #expect(try await store.task(task.id) == nil)
    }
  }
}

/// The statements of commit 73d3d67.
private enum Before {
  static func register(_ boot: UniqueID, _ pool: PostgresPool) async throws -> Int32 {
    let statement = PostgresStatement("select register_worker($1, $2, $3, $4, $5, $6, $7, $8, $9)", writes: true)
    return try await pool.query(
      statement, .uuid(boot.high, boot.low), .text("mill"), .int32(7), .int32(3600),
      .textArray(["noop", "download"]), .textArray(["default"]), uuids([.volume]), .textArray([String]()),
      .textArray([String]()))[0].int32(0)
  }

  static func submit(_ spec: TaskSpec, _ pool: PostgresPool) async throws -> [UniqueID] {
    let statement = PostgresStatement(
      "select submit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)", writes: true)
    let json = """
      {"id":"\(spec.id)","kind":"\(spec.kind.rawValue)","source":"\(spec.source)",\
      "destination":"\(spec.destination ?? "")"}
      """
    let lane = LaneKey(spec)
    return try await apply(
      statement(
        .int16Array([0]), .textArray([lane.queue]), .textArray([lane.kind.rawValue]), .textArray([lane.host]),
        .textArray([lane.storage]), uuids([spec.id]), .int32Array([1]), .int16Array([0]),
        .timestamptzArray([Int64?.none]), .boolArray([false]), .jsonArray([Array(json.utf8)]), uuids([]), uuids([])),
      naming: [], pool
    ).array(0) { cell throws(PostgresError) in
      let id = try cell.uuid()
      return UniqueID(high: id.high, low: id.low)
    }
  }

  static func control(_ task: UniqueID, _ action: String, _ pool: PostgresPool) async throws -> String {
    let statement = PostgresStatement(
      "select outcome, worker_boot, code, reason from control($1, $2, $3, $4)", writes: true)
    let query = statement(uuids([.random()]), uuids([task]), .textArray([action]), .int16Array([Int16?.none]))
    return try await apply(query, naming: [task], pool).text(0)
  }

  private static func apply(_ query: PostgresQuery, naming tasks: [UniqueID], _ pool: PostgresPool) async throws
    -> PostgresRow
  {
    let begin = PostgresStatement("select begin_apply($1, $2)", writes: true)
    let end = PostgresStatement("select wake_lanes()", writes: true)
    return try await pool.pipeline([begin(.bool(true), uuids(tasks)), query, end()])[1][0]
  }

  static func claim(_ worker: Int32, call: Int64 = 1, _ pool: PostgresPool) async throws -> [UniqueID] {
    let statement = PostgresStatement("select claim($1, $2, $3)", writes: true)
    return try await pool.query(statement, .int32(worker), .int32(10), .int64(call)).map { row in
      let id = try row.uuid(0)
      return UniqueID(high: id.high, low: id.low)
    }
  }

  static func claimed(_ tasks: [UniqueID], _ pool: PostgresPool) async throws -> PostgresRows {
    let statement = PostgresStatement(
      """
      select task_id, epoch, attempt, priority, spec,
             generation, identity, volume, staging_name, done::text, tail_crc, publishing
        from claimed($1)
      """)
    return try await pool.query(statement, uuids(tasks))
  }

  static func record(
    _ task: UniqueID, epoch: Int32, _ done: [Range<Int64>], publishing: Bool = false, _ pool: PostgresPool
  ) async throws -> [Bool] {
    let statement = PostgresStatement(
      "select record_checkpoints($1, $2, $3, $4, $5, $6, array[$7::text::int8multirange], $8, $9)", writes: true)
    let ranges = done.map { "[\($0.lowerBound),\($0.upperBound))" }.joined(separator: ",")
    let identity = #"{"finalURL":"https://example.com/a","size":9000,"etag":"\"v\""}"#
    return try await flags(
      pool.query(
        statement, uuids([task]), .int32Array([epoch]), .int32Array([3]), .jsonArray([Array(identity.utf8)]),
        uuids([.volume]), .textArray(["a.3"]), .text("{\(ranges)}"), .int64Array([Int64?(77)]),
        .byteaArray([publishing ? Array(repeating: 0xAB, count: 32) : nil])))
  }

  static func settle(_ task: UniqueID, epoch: Int32, _ outcome: String, _ pool: PostgresPool) async throws -> [Bool] {
    let statement = PostgresStatement("select settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)", writes: true)
    let success = outcome == "succeeded"
    return try await flags(
      pool.query(
        statement, uuids([task]), .int32Array([epoch]), .textArray([outcome]), .int64Array([success ? nil : 0]),
        .byteaArray([success ? Array(repeating: 0xAB, count: 32) : nil]), .int64Array([success ? 9000 : nil]),
        .textArray([String?.none]), .textArray([String?.none]), .textArray([String?.none]), .int32Array([Int32?.none])))
  }

  private static func flags(_ rows: PostgresRows) throws -> [Bool] {
    try rows[0].array(0) { cell throws(PostgresError) in try cell.bool() }
  }

  private static func uuids(_ ids: [UniqueID]) -> PostgresValue {
    .uuidArray(ids.map { PostgresUUID(high: $0.high, low: $0.low) })
  }
}

/// The schema changes while workers of both versions use it.
@Suite struct UpgradeUnderLoadTests {
  @Test(
    "workers of the version before lose nothing during an upgrade, and workers of this version run beside them")
  func upgrade() async throws {
    try await withFirstVersion { store, pool in
      let worker = try await Before.register(.random(), pool)
      try await withThrowingTaskGroup { group in
        for _ in 0..<2 { group.addTask { try await submit(40, pool) } }
        group.addTask { try await run(worker, calls: 40, pool) }
        group.addTask { try await migrate(store, pool) }
        try await group.waitForAll()
      }
      try await finish(store)
      let succeeded = try await pool.query("select count(*) from task where state = 'succeeded'")
      // And five of the tasks that existed before.
      #expect(try succeeded[0].int64(0) == 85)
      #expect(try await store.tasks(TaskFilter(state: .queued)).allSatisfy { $0.runAt != nil })
    }
  }

  @Test("a migration that takes a second is applied while workers renew, clean up, send hooks and publish")
  func longMigration() async throws {
    try await withPostgresStore { store, pool in
      let worker = try await store.register(.downloads)
      let tables = ["intent", "cleanup", "hook_delivery", "outbox", "run", "worker", "task", "count_change"]
      let slow = Migration(
        number: Schema.migrations.count + 1, name: "slow",
        sql: "select pg_sleep(1); " + tables.map { "alter table \($0) add more int;" }.joined(separator: " "))
      var migrator = Migrator(pool, Schema.migrations + [slow], routines: Schema.routines)
      migrator.patience = .seconds(60)
      let calls: [@Sendable () async throws -> Void] = [
        { _ = try await store.renew(worker, samples: []) },
        { _ = try await store.claimCleanups(worker, limit: 10, except: []) },
        { _ = try await store.claimHooks(worker, limit: 10, perHost: 2, besides: [:], failing: [], places: 0) },
        { _ = try await store.pendingEvents(limit: 10, bytes: 1 << 20, excluding: []) },
        { _ = try await store.sweep() },
      ]
      let users = calls.map { call in
        Task {
          while !Task.isCancelled {
            try? await call()
            try await Task.sleep(for: .milliseconds(20))
          }
        }
      }
      defer { for user in users { user.cancel() } }
      #expect(try await migrator.apply().migrations == [slow])
    }
  }

  private func submit(_ count: Int, _ pool: PostgresPool) async throws {
    for _ in 0..<count {
      let spec = TaskSpec.noop()
      let added = try await repeated { try await Before.submit(spec, pool) }
      #expect(added == [spec.id])
    }
  }

  private func run(_ worker: Int32, calls: Int64, _ pool: PostgresPool) async throws {
    for call in 1...calls {
      for id in try await repeated({ try await Before.claim(worker, call: call, pool) }) {
        let epoch = try await repeated { try await Before.claimed([id], pool)[0].int32(1) }
        let recorded = try await repeated { try await Before.record(id, epoch: epoch, [0..<4096], pool) }
        #expect(recorded == [true])
        let settled = try await repeated { try await Before.settle(id, epoch: epoch, "succeeded", pool) }
        #expect(settled == [true])
      }
    }
  }

  private func migrate(_ store: PostgresStore, _ pool: PostgresPool) async throws {
    try await Task.sleep(for: .milliseconds(50))
    let first = try await Schema.migrator(pool).apply()
    #expect(first.routines && first.migrations.count == Schema.migrations.count - 1)
    // The functions change repeatedly, as with builds whose functions differ.
    for number in 0..<5 {
      let routines = Routines(
        sql: "\(Schema.routines.sql)-- \(number)", tables: Schema.routines.tables, revision: Schema.revisions.count)
      let result = try await Migrator(pool, Schema.migrations, routines: routines).apply()
      #expect(result.routines)
    }
    let last = try await Schema.migrator(pool).apply()
    #expect(last.routines)
    try await finish(store)
  }

  /// A worker of this version claims and ends the waiting tasks.
  private func finish(_ store: PostgresStore) async throws {
    let worker = try await store.register(.downloads)
    while case let claims = try await store.claim(worker, limit: 5), !claims.isEmpty {
      let ends = claims.map { Settlement(taskID: $0.spec.id, epoch: $0.epoch, outcome: .success) }
      let settled = try await store.settle(ends)
      #expect(settled.allSatisfy { $0 })
    }
  }

  /// Repeats a call like the version before: if the schema is not the one that it knows, or if it lost a race.
  private func repeated<Result>(_ call: () async throws -> Result) async throws -> Result {
    for _ in 0..<200 {
      do {
        return try await call()
      } catch let error as PostgresError
        where ["3F000", "42P01", "42883", "42703"].contains(error.sqlState) || error.isRetryable
      {
        try await Task.sleep(for: .milliseconds(10))
      }
    }
    return try await call()
  }
}
