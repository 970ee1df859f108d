import LocalFleet
import ReelhaulCodec
import ReelhaulPostgres
import TaskCore
import TaskStore
import TestKit
import Testing

/// Tests for faults that only the store in PostgreSQL can have.
@Suite struct PostgresStoreTests {
  @Test("a running task is stopping from the command on until its run ends or the command is withdrawn")
  func stoppingTasks() async throws {
    try await withPostgresStore { store, _ in
      let worker = try await store.register(.sample)
      let ids = [UniqueID.random(), .random(), .random(), .random()]
      func control(_ action: ControlAction, _ task: UniqueID) async throws {
        _ = try await store.apply([.control(.init(id: .random(), taskID: task, action: action))])
      }
      let specs = ids.map { TaskSpec.noop($0) }
      _ = try await store.apply(specs[..<3].map(Command.submit))
      let claims = try await store.claim(worker, limit: 3)
      _ = try await store.apply([.submit(specs[3])])
      #expect(try await store.stopping(ids).isEmpty)
      for id in [ids[0], ids[1], ids[3]] { try await control(.pause, id) }
      let both = try await store.stopping(ids)
      #expect(both == [ids[0]: .pause, ids[1]: .pause], "the queued one is paused at once")
      let found = try await store.find(ids, before: .init(microseconds: .max / 2), queues: nil)
      #expect(Set(found.filter(\.isPausing).map(\.id)) == [ids[0], ids[1]])
      try await control(.resume, ids[1])
      try await control(.cancel, ids[0])
      #expect(try await store.stopping(ids) == [ids[0]: .cancel])
      let claim = try #require(claims.first { $0.spec.id == ids[0] })
      _ = try await store.settle([Settlement(taskID: ids[0], epoch: claim.epoch, outcome: .handBack)])
      #expect(try await store.stopping(ids).isEmpty)
    }
  }

  @Test("an operation of a newer program is left to it, and keeps no other one from being driven")
  func operationsOfNewerPrograms() async throws {
    try await withPostgresStore { store, pool in
      func create(_ id: UniqueID) async throws {
        _ = try await store.createOperation(
          TaskOperation(
            id: id, action: .cancel, selection: .filter(OperationFilter()), actor: nil,
            createdAt: Timestamp(microseconds: 0)))
      }
      let (newer, ours) = ([UniqueID.random(), .random()], UniqueID.random())
      for id in newer { try await create(id) }
      for (id, filter) in zip(newer, [#"{"state":["paused"],"size":"1GiB"}"#, #"{"state":["dormant"]}"#]) {
        _ = try await pool.query(
          "update operation set filter = $2 where id = $1", .uuid(id.high, id.low), .json(Array(filter.utf8)))
      }
      try await create(ours)
      let driver = UniqueID.random()
      for _ in 0..<2 {
        let taken = try await store.takeOperations(driver, seconds: 15, limit: 1, only: nil)
        #expect(taken.map(\.id) == [ours])
        let held = try await pool.query("select id from operation where driver is not null").values { try $0.uuid() }
        #expect(held.map { UniqueID(high: $0.high, low: $0.low) } == [ours])
      }
      #expect(try await store.takeOperations(driver, seconds: 15, limit: 8, only: newer[0]).isEmpty)
      #expect(try await store.operations(limit: 10, within: nil).map(\.id) == [ours])
      await #expect(throws: StoreError.self) { try await store.operation(newer[0]) }
    }
  }

  @Test("operations whose commands are under way keep no other one from being driven") func waitingOperations()
    async throws
  {
    try await withPostgresStore { store, _ in
      let driver = UniqueID.random()
      var ids: [UniqueID] = []
      for number in 0..<3 {
        let id = UniqueID.random()
        ids.append(id)
        _ = try await store.createOperation(
          TaskOperation(
            id: id, action: .cancel, selection: .filter(OperationFilter()), actor: nil,
            createdAt: Timestamp(microseconds: Int64(number))))
      }
      #expect(
        try await store.takeOperations(driver, seconds: 15, limit: 2, only: nil).map(\.id) == Array(ids.prefix(2)))
      var step = OperationStep()
      step.isAtEnd = true
      for id in ids.prefix(2) { #expect(try await store.advance(id, driver, step)) }
      #expect(try await Set(store.takeOperations(driver, seconds: 15, limit: 2, only: nil).map(\.id)) == Set(ids))
    }
  }

  @Test("a NUL in the reason of a failure does not keep a task from failing") func nulInReasons() async throws {
    try await withPostgresStore { store, _ in
      let worker = try await store.register(.sample)
      let spec = TaskSpec.noop()
      _ = try await store.apply([.submit(spec)])
      let claim = try #require(try await store.claim(worker, limit: 1).first)
      let failure = TaskFailure(code: .storageDenied, message: "s3://a/b\0c: refused", class: .fail)
      let outcome = Settlement.Outcome.failed(failure, retryIn: nil)
      #expect(try await store.settle([Settlement(taskID: spec.id, epoch: claim.epoch, outcome: outcome)]) == [true])
      #expect(try await store.task(spec.id)?.error?.message == "s3://a/b c: refused")
    }
  }

  @Test("functions that a newer program has made end a program, as newer migrations do")
  func newerFunctions() async throws {
    try await withPostgresStore { store, pool in
      _ = try await pool.query("update schema_routines set revision = revision + 1, checksum = checksum + 1")
      let error = await #expect(throws: StoreError.self) { try await store.bind(topicPrefix: "reelhaul") }
      #expect(error?.isFinal == true && error?.description.contains("upgrade this one") == true)
    }
  }

  /// Events with large tasks are read a few at a time, each once and in order.
  @Test("events with large tasks are read a few at a time, each once and in order")
  func eventsAreCutToWhatMemoryHolds() async throws {
    try await withPostgresStore { store, _ in
      let worker = try await store.register(.sample)
      let short = (0..<40).map { _ in TaskSpec.noop() }
      let long = (0..<40).map { _ in Self.longTask() }
      _ = try await store.apply((short[..<20] + long + short[20...]).map { .submit($0) })
      let removed = [long[0], long[39], short[39]].map(\.id)
      _ = try await store.apply(removed.map { .control(.init(id: .random(), taskID: $0, action: .remove)) })
      #expect(try await store.claim(worker, limit: 100).count == 77)
      var sequences: [UniqueID: [Int]] = [:]
      while case let pending = try await store.pendingEvents(limit: 100), let last = pending.batches.last {
        for event in pending.events {
          sequences[event.taskID, default: []].append(event.sequence)
          #expect((event.task == nil) == removed.contains(event.taskID))
        }
        #expect(pending.events.count { $0.task?.spec.labels.isEmpty == false } <= 12, "3 MiB")
        try await store.discardEvents(pending.wholeRows)
        // Twice, as after an answer that was lost.
        for _ in 0..<2 where pending.cutBatch != nil { try await store.discardFirstEvents(last) }
      }
      #expect(sequences.count == 80)
      #expect(sequences.values.allSatisfy { $0 == [1, 2] })
    }
  }

  @Test("a row of many small events is read in parts, down to single events, each once and in order")
  func rowsAreCut() async throws {
    try await withPostgresStore { store, _ in
      let specs = (0..<50).map { _ in TaskSpec.noop() }
      _ = try await store.apply(specs.map { .submit($0) })
      var events: [TaskEvent] = []
      for bytes in Array(repeating: 1, count: 5) + Array(repeating: 2000, count: 40) {
        let pending = try await store.pendingEvents(limit: 100, bytes: bytes)
        #expect(pending.eventCount > 0 || events.count == 50)
        #expect(bytes > 1 || pending.eventCount == 1 && pending.cutBatch != nil)
        events += pending.events
        try await store.discardEvents(pending.wholeRows)
        if let batch = pending.cutBatch { try await store.discardFirstEvents(batch) }
      }
      #expect(events.map(\.taskID) == specs.map(\.id).sorted())
    }
  }

  private static func longTask() -> TaskSpec {
    var spec = TaskSpec.noop()
    for number in 0..<64 { spec.labels["label-\(number)"] = String(repeating: "x", count: 4096) }
    return spec
  }

  @Test("a task that must be read only for its second event holds up nothing before large ones")
  func firstTaskIsReadLate() async throws {
    try await withPostgresStore { store, _ in
      let long = (0..<13).map { _ in Self.longTask() }
      _ = try await store.apply(long.map { .submit($0) })
      while try await !store.takeEvents(limit: 100).isEmpty {}
      let first = TaskSpec.noop()
      let pauses = (long + [first]).map { Command.control(.init(id: .random(), taskID: $0.id, action: .pause)) }
      _ = try await store.apply([.submit(first)] + pauses)
      var events: [TaskEvent] = []
      while case let next = try await store.takeEvents(limit: 100), !next.isEmpty { events += next }
      #expect(events.count == 15 && events.first?.taskID == first.id && events.last?.taskID == first.id)
      #expect(events.allSatisfy { $0.task?.spec.id == $0.taskID })
    }
  }

  @Test("a task with a value that only a newer version knows waits for a worker of it, and holds nothing up")
  func newerValue() async throws {
    try await withPostgresStore { store, pool in
      let worker = try await store.register(.sample)
      let (newer, retried, other) = (TaskSpec.noop(), TaskSpec.noop(), TaskSpec.noop())
      _ = try await store.apply([newer, retried, other].map { .submit($0) })
      // One that runs again is read in another way.
      let claim = try #require(try await store.claim(worker, limit: 3).first { $0.spec.id == retried.id })
      _ = try await store.settle([Settlement(taskID: retried.id, epoch: claim.epoch, outcome: .handBack)])
      _ = try await pool.query(
        """
        update task set spec = (spec::jsonb || '{"ifExists": "rename", "queue": "default"}')::json
         where id = any(array[$1, $2]::uuid[])
        """, .uuid(newer.id.high, newer.id.low), .uuid(retried.id.high, retried.id.low))
      _ = try await pool.query("update worker set lease_until = now() - interval '1 s'")
      _ = try await store.sweep()
      let second = try await store.register(.sample)
      #expect(try await store.claim(second, limit: 3).map(\.spec.id) == [other.id])
      for id in [newer.id, retried.id] {
        let task = try #require(try await store.task(id))
        #expect(task.state == .queued && task.error?.code == .specUnreadable && task.runAt != nil)
        #expect(task.spec.source == newer.source)
      }
      #expect(try await store.takeEvents(limit: 100).count > 3)
    }
  }

  @Test("a specification that a hand has spoiled hides no other task, and holds up no event and no clean-up")
  func spoiledRow() async throws {
    try await withPostgresStore { store, pool in
      var registration = WorkerRegistration.sample
      registration.volumes = ["default": .random()]
      let worker = try await store.register(registration)
      let specs = ["a", "b"].map { TaskSpec.noop(destination: "storage://default/\($0)") }
      _ = try await store.apply(specs.map { .submit($0) })
      func spoil(_ table: String) async throws {
        _ = try await pool.query(
          PostgresStatement("update \(table) set spec = '{\"source\":7}' where spec ->> 'id' = $1"),
          .text("\(specs[0].id)"))
      }
      _ = try await pool.query("create table saved as select id, spec from task")
      try await spoil("task")
      // The event of the submit tells the specification itself.
      _ = try await pool.query("update outbox set specs = null")
      let spoiled = try #require(try await store.task(specs[0].id))
      #expect(spoiled.error?.code == .specUnreadable && spoiled.state == .queued)
      #expect(try await store.page(TaskFilter()).tasks.map(\.spec.id).sorted() == specs.map(\.id).sorted())
      #expect(Set(try await store.takeEvents(limit: 100).compactMap(\.task?.spec.id)) == Set(specs.map(\.id)))
      #expect(try await store.claim(worker, limit: 3).map(\.spec.id) == [specs[1].id])

      _ = try await pool.query("update task set spec = saved.spec from saved where saved.id = task.id")
      let third = TaskSpec.noop(destination: "storage://default/c")
      _ = try await store.apply([.submit(third)])
      for spec in [specs[0], third] {
        _ = try await store.apply(
          [.pause, .remove(files: true)].map { .control(.init(id: .random(), taskID: spec.id, action: $0)) })
      }
      try await spoil("cleanup")
      #expect(try await store.claimCleanups(worker, limit: 10).map(\.spec.id) == [third.id])
      let waits = try await pool.query(
        "select count(*) from cleanup where run_at > now() + interval '50 min' and error <> ''")
      #expect(try waits[0].int64(0) == 1)
      #expect(try await store.audit().count == 1)
      _ = try await pool.query("delete from cleanup")
    }
  }

  @Test("a reader of the inbox, as a dump, does not delay the commands of a new day")
  func dumpAtMidnight() async throws {
    try await withPostgresStore { store, pool in
      _ = try await store.apply([.submit(.noop())])
      let partitions = try await pool.query(
        """
        select inhrelid::regclass::text from pg_inherits where inhparent = 'command_inbox'::regclass order by 1
        """)
      let names = try partitions.map { try $0.text(0) }
      #expect(names.count == 3)
      // As after two days, and with a partition whose time is over.
      func drop(_ names: ArraySlice<String>) async throws {
        _ = try await pool.withConnection { try await $0.script("drop table \(names.joined(separator: ", "))") }
      }
      try await drop(names[1...])
      _ = try await pool.query(
        "create table command_inbox_20200101 partition of command_inbox for values from ('2020-01-01') to ('2020-01-02')"
      )
      func tables() async throws -> Set<String> {
        let rows = try await pool.query(
          "select inhrelid::regclass::text from pg_inherits where inhparent = 'command_inbox'::regclass")
        return Set(try rows.map { try $0.text(0) })
      }
      _ = try await pool.withConnection { reader in
        try await reader.script("begin; select count(*) from command_inbox")
        #expect(try await store.apply([.submit(.noop())]) == [.applied])
        _ = try await store.sweep()
        try await store.tidy()
        #expect(try await tables() == Set(names + ["command_inbox_20200101"]))
        try await reader.script("commit")
      }
      try await store.tidy()
      #expect(try await tables() == Set(names))
      // A clock that was wrong may have left out today.
      try await drop(names[..<1])
      #expect(try await store.apply([.submit(.noop())]) == [.applied])
    }
  }

  @Test("events with large outputs are read a few at a time, and the relay hears that more wait")
  func largeOutputsCount() async throws {
    try await withPostgresStore { store, pool in
      let worker = try await store.register(.sample)
      let specs = (0..<80).map { _ in TaskSpec.noop() }
      _ = try await store.apply(specs.map { .submit($0) })
      let claims = try await store.claim(worker, limit: 100)
      _ = try await store.takeEvents(limit: 100)
      // Random, because PostgreSQL would compress anything else.
      let output = Array("\"\(Hex.encode((0..<30_000).map { _ in UInt8.random(in: 0...255) }))\"".utf8)
      for claim in claims {
        let outcome = Settlement.Outcome.succeeded(sha256: nil, bytes: 1, output: output)
        _ = try await store.settle([Settlement(taskID: claim.spec.id, epoch: claim.epoch, outcome: outcome)])
      }
      // One store knows the tasks from its earlier events, another one reads them.
      for store in [store, PostgresStore(pool: pool)] {
        let pending = try await store.pendingEvents(limit: 100)
        #expect((1...53).contains(pending.eventCount), "3 MiB")
        #expect(pending.hasMore)
      }
      var ended = 0
      while case let pending = try await store.pendingEvents(limit: 100), !pending.batches.isEmpty {
        ended += pending.eventCount
        #expect(pending.hasMore == (ended < 80))
        try await store.discardEvents(pending.wholeRows)
        if let batch = pending.cutBatch { try await store.discardFirstEvents(batch) }
      }
      #expect(ended == 80)
    }
  }

  @Test("a success that is settled beside a failure comes with what its document needs")
  func aSuccessBesideAFailure() async throws {
    try await withPostgresStore { store, pool in
      let worker = try await store.register(.sample)
      _ = try await store.apply([.submit(.noop()), .submit(.noop())])
      let claims = try await store.claim(worker, limit: 2)
      let digest = [UInt8](repeating: 7, count: 32)
      let failure = TaskFailure(code: .http(404), message: "gone", class: .fail)
      let outcomes =
        [
          .failed(failure, retryIn: nil), .succeeded(sha256: digest, bytes: 5, output: Array("[1]".utf8)),
        ] as [Settlement.Outcome]
      _ = try await store.settle(
        zip(claims, outcomes).map { Settlement(taskID: $0.spec.id, epoch: $0.epoch, outcome: $1) })
      let rows = try await pool.query(
        """
        select kind, sizes[1], digests[1], outputs[1]::text from outbox
         where kind in ('failed', 'succeeded') order by kind
        """)
      let ends = try rows.map { try ($0.text(0), $0[1]?.int64(), $0[2]?.bytes(), $0[3]?.text()) }
      try #require(ends.map(\.0) == ["failed", "succeeded"])
      #expect(ends[0].1 == nil && ends[0].3 == nil)
      #expect(ends[1].1 == 5 && ends[1].2 == digest && ends[1].3 == "[1]")
    }
  }

  /// A relay knows tasks from earlier events. Another one may have led in the meantime.
  @Test("a relay that missed events of a task does not continue from what it knew")
  func aRelayThatMissedEventsReadsTheTask() async throws {
    try await withPostgresStore { first, pool in
      let second = PostgresStore(pool: pool)
      let worker = try await first.register(.sample)
      // What comes now cannot be published already.
      _ = try await first.takeEvents(limit: 1)
      let spec = TaskSpec.noop()
      _ = try await first.apply([.submit(spec)])
      func settle(_ outcome: Settlement.Outcome) async throws {
        for claim in try await first.claim(worker, limit: 1) {
          _ = try await first.settle([Settlement(taskID: spec.id, epoch: claim.epoch, outcome: outcome)])
        }
      }
      let failure = TaskFailure(code: .http(503), message: "busy", class: .retry)
      try await settle(.failed(failure, retryIn: .zero))
      let begun = try await first.takeEvents(limit: 2)
      #expect(begun.map(\.task?.state) == [.running, .running])
      let retried = try await second.takeEvents(limit: 1)
      #expect(retried.map(\.kind) == [.retrying])
      try await settle(.success)
      let again = try await second.takeEvents(limit: 1)
      #expect(again.map(\.kind) == [.started])
      let events = try await first.takeEvents(limit: 1)
      let last = try #require(events.first)
      #expect(last.kind == .succeeded)
      let task = try await first.task(spec.id)
      #expect(last.task == task)
      #expect(task?.attempt == 2)
    }
  }

  @Test(
    "the audit finds every kind of damage",
    arguments: [
      ("update bucket set used = used + 1 where scope = 'kind'", "kind noop counts 1 runs but has 0"),
      ("delete from ready", "is queued and in {}"),
      ("insert into delayed select task_id, now() from ready", "is queued and in {ready, delayed}"),
      ("update lane set ready = false", "is off but has waiting tasks"),
      ("update lane set head = 9223372036854775807", "has its head at 9223372036854775807"),
      ("update ready set epoch = 7", ",7,0,1) instead of"),
      ("update task set state = 'blocked'", "is blocked but waits for no task"),
      (
        "insert into task_dependency select id, id from task; update task set state = 'succeeded', finished_at = now()",
        "which has succeeded"
      ),
      ("insert into intent values (1, gen_random_uuid(), 'pause')", "which worker 1 does not run"),
    ])
  func theAuditFinds(_ damage: String, _ finding: String) async throws {
    try await withPostgresStore { store, pool in
      _ = try await store.apply([.submit(.noop())])
      _ = try await pool.withConnection { connection in
        _ = try await connection.script("begin; \(damage)")
        let findings = try await connection.script("select * from audit()").flatMap { try $0.map { try $0.text(0) } }
        #expect(findings.contains { $0.contains(finding) }, "\(findings)")
        _ = try await connection.script("rollback")
      }
    }
  }

  /// The last line of defence: even a claim that miscounts cannot exceed a limit.
  @Test("the database refuses a run beyond a limit even if a claim miscounts")
  func theDatabaseRefusesARunOverALimit() async throws {
    try await withPostgresStore { store, pool in
      try await store.setLimit(.kind, name: "noop", to: 1)
      let worker = try await store.register(.sample)
      _ = try await store.apply([.submit(.noop()), .submit(.noop())])
      let claim = try #require(try await store.claim(worker, limit: 2).first)
      let error = await #expect(throws: PostgresError.self) {
        _ = try await pool.query(
          """
          insert into run (task_id, epoch, worker_id, claim_call, queue_id, kind_id, host_id, storage_id, attempt, sequence)
          select gen_random_uuid(), 1, worker_id, 9, queue_id, kind_id, host_id, storage_id, 1, 1 from run
          """)
      }
      #expect(error?.constraint == "bucket_never_over_its_ceiling")
      _ = try await store.settle([Settlement(taskID: claim.spec.id, epoch: claim.epoch, outcome: .success)])
    }
  }

  /// With more than a few delayed tasks, the listing scans all tasks.
  @Test("among many delayed tasks, scheduled and retried ones are listed apart")
  func manyDelayedTasksAreListedByWhatTheyWaitFor() async throws {
    try await withPostgresStore { store, _ in
      let retried = TaskSpec.noop(queue: "q")
      _ = try await store.apply([.submit(retried)])
      let claim = try #require(try await store.claim(try await store.register(.sample), limit: 1).first)
      _ = try await store.settle([
        Settlement(taskID: claim.spec.id, epoch: claim.epoch, outcome: .failed(.reset, retryIn: .seconds(3600)))
      ])
      _ = try await store.apply((0..<2500).map { _ in .submit(.noop(notBefore: .later)) })
      #expect(try await store.tasks(TaskFilter(state: .retrying)).map(\.spec.id) == [retried.id])
      #expect(try await store.tasks(TaskFilter(state: .retrying, queue: "q")).map(\.spec.id) == [retried.id])
      #expect(try await store.tasks(TaskFilter(state: .retrying, queue: "default")) == [])
      #expect(try await store.tasks(TaskFilter(state: .scheduled, limit: 3000)).count == 2500)
    }
  }

  @Test("an audit may take longer than other calls, because it reads all tasks") func auditsTakeTheirTime() async throws
  {
    try await withPostgresStore { _, pool in
      let name = try await pool.query("SELECT current_database()")[0].text(0)
      var hasty = try PostgresConfiguration.patient(url: try await TestPostgres.shared.server().url(database: name))
      hasty.statementTimeout = .milliseconds(500)
      try await PostgresPool.with(hasty, size: 1) { other in
        let audit = try await pool.transaction { transaction in
          _ = try await transaction.query("LOCK TABLE task IN ACCESS EXCLUSIVE MODE")
          let audit = Task { try await PostgresStore(pool: other).audit() }
          try await Task.sleep(for: .seconds(1))
          return audit
        }
        #expect(try await audit.value == [])
      }
    }
  }

  @Test("a database without the schema is reported as such")
  func aDatabaseWithoutTheSchemaIsNamedAsSuch() async throws {
    try await withPostgresStore { store, pool in
      _ = try await pool.withConnection { try await $0.script("alter function sweep rename to swept") }
      let error = await #expect(throws: StoreError.self) { _ = try await store.sweep() }
      guard case .schema? = error else {
        Issue.record("\(String(describing: error))")
        return
      }
    }
  }
}

extension WorkerRegistration {
  static var sample: WorkerRegistration {
    WorkerRegistration(boot: .random(), host: "test", pid: 1, leaseSeconds: 3600, kinds: [.noop], volumes: [:])
  }
}
