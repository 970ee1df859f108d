import ReelhaulPostgres
import TaskCore
import TaskStore
import TestKit
import Testing

/// What nobody needs any more goes.
extension PostgresStoreTests {
  @Test("lanes whose tasks are gone go, also where no worker could look at them") func emptyLanes() async throws {
    try await withPostgresStore { store, pool in
      _ = try await store.register(.sample)
      let specs = (0..<20).map { host in
        var spec = TaskSpec.noop(host: "h\(host)")
        spec.kind = TaskKind(rawValue: "of-no-worker")
        return spec
      }
      _ = try await store.apply(specs.map { .submit($0) })
      func isOn() async throws -> Bool {
        try await pool.query("select exists (select from lane where ready)")[0].bool(0)
      }
      #expect(try await isOn())
      _ = try await store.apply(
        specs.dropLast().map { .control(.init(id: .random(), taskID: $0.id, action: .remove(files: false))) })
      try await store.tidy()
      #expect(try await pool.query("select count(*) from lane")[0].int64(0) == 1)
      #expect(try await isOn())
      _ = try await store.apply([.control(.init(id: .random(), taskID: specs[19].id, action: .cancel))])
      try await store.tidy()
      #expect(try await !isOn())
      _ = try await store.apply([.control(.init(id: .random(), taskID: specs[19].id, action: .retry))])
      #expect(try await isOn())
      #expect(try await store.audit().isEmpty)
    }
  }

  @Test("lanes that were needed once all go at once, and one step that fails keeps no other from being done")
  func manyLanes() async throws {
    try await withPostgresStore { store, pool in
      _ = try await store.apply([.submit(.noop(queue: "a"))])
      _ = try await pool.query(
        """
        insert into lane (rank, queue_id, kind_id, host_id, storage_id, source_storage_id)
        select l.rank + n, l.queue_id, l.kind_id, l.host_id, l.storage_id, l.source_storage_id
          from lane l, generate_series(1, 10001) n
        """)
      _ = try await pool.query(
        "insert into bucket (id, scope, name) select 100 + n, 'host', 'h' || n from generate_series(1, 10001) n")
      _ = try await pool.query("create or replace function rest_lanes() returns void language sql as 'select 1/0'")
      await #expect(throws: StoreError.self) { try await store.tidy() }
      #expect(try await pool.query("select count(*) from lane")[0].int64(0) == 1)
      #expect(try await pool.query("select count(*) from bucket where id > 100")[0].int64(0) == 0)
    }
  }

  @Test("queues share by weight, however many others rest") func sharingAmongMany() async throws {
    try await withPostgresStore { store, _ in
      let worker = try await store.register(.sample)
      _ = try await store.apply(
        (0..<1_100).map { number in
          var spec = TaskSpec.noop(queue: "customer-\(number)")
          spec.paused = true
          return .submit(spec)
        })
      try await store.setWeight(queue: "heavy", to: 3)
      for queue in ["heavy", "light"] { _ = try await store.apply((0..<40).map { _ in .submit(.noop(queue: queue)) }) }
      var heavy = 0
      for _ in 0..<10 { heavy += try await store.claim(worker, limit: 4).count { $0.spec.queue == "heavy" } }
      #expect((29...31).contains(heavy), "\(heavy)")
      #expect(try await store.audit().isEmpty)
    }
  }

  @Test("queues whose tasks cannot run keep no claim from what can", arguments: [false, true], [300, 1_100])
  func manyEmptyQueues(isWithdrawn: Bool, queues: Int) async throws {
    try await withPostgresStore { store, _ in
      let worker = try await store.register(.sample)
      let others = (0..<queues).map { number in
        var spec = TaskSpec.noop(queue: "customer-\(number)")
        spec.paused = !isWithdrawn
        return spec
      }
      let due = TaskSpec.noop(queue: "due")
      _ = try await store.apply((others + [due]).map { .submit($0) })
      if isWithdrawn {
        _ = try await store.apply(others.map { .control(.init(id: .random(), taskID: $0.id, action: .pause)) })
      }
      var calls = 0
      var claimed: [UniqueID] = []
      while claimed.isEmpty, calls < 300 {
        claimed = try await store.claim(worker, limit: 1).map(\.spec.id)
        calls += 1
      }
      #expect(claimed == [due.id])
      // Lanes that got no task are not looked at. Of the others, one call looks at a few only, and switches them off.
      #expect(isWithdrawn ? (2...queues / 50).contains(calls) : calls == 1, "\(calls)")
      #expect(try await store.audit().isEmpty)
    }
  }

  @Test("a queue that is ahead of the others goes with its lanes, too") func queueAhead() async throws {
    try await withPostgresStore { store, pool in
      let worker = try await store.register(.sample)
      let specs = [TaskSpec.noop(queue: "ahead"), .noop(queue: "other")]
      _ = try await store.apply(specs.map { .submit($0) })
      for claim in try await store.claim(worker, limit: 2) {
        _ = try await store.settle([Settlement(taskID: claim.spec.id, epoch: claim.epoch, outcome: .handBack)])
      }
      _ = try await store.apply(
        specs.prefix(1).map { .control(.init(id: .random(), taskID: $0.id, action: .remove(files: false))) })
      _ = try await pool.query(
        """
        update queue set start = 0, cursor_lane = 1, tag = 7 where id = (select id from bucket where name = 'ahead')
        """)
      _ = try await pool.query("update queue set start = 1 where start <> 0")
      try await store.tidy()
      #expect(try await pool.query("select count(*) from bucket where name = 'ahead'")[0].int64(0) == 0)
      #expect(try await store.audit().isEmpty)
    }
  }

  @Test("after a dump was restored into a cluster with lower transaction ids, new tasks run too")
  func restored() async throws {
    try await withPostgresStore { store, pool in
      let worker = try await store.register(.sample)
      _ = try await store.apply([.submit(.noop())])
      _ = try await store.claim(worker, limit: 1)
      _ = try await pool.query("update lane set head = 1::bigint << 60, ready = false")
      let spec = TaskSpec.noop()
      _ = try await store.apply([.submit(spec)])
      #expect(try await store.claim(worker, limit: 1).isEmpty)
      try await store.tidy()
      #expect(try await store.claim(worker, limit: 1).map(\.spec.id) == [spec.id])
    }
  }

  /// New names of hosts never stop coming.
  @Test("hosts that no task needs are forgotten")
  func hostsThatNobodyNeedsAreForgotten() async throws {
    try await withPostgresStore { store, pool in
      let worker = try await store.register(.sample)
      try await store.setLimit(.host, name: "limited", to: 3)
      func hosts() async throws -> Set<String> {
        let rows = try await pool.query("select name from bucket where scope = 'host' and name <> ''")
        return Set(try rows.map { try $0.text(0) })
      }
      let failed = TaskSpec.noop(queue: "q", host: "failed")
      _ = try await store.apply([.submit(failed)])
      let claim = try #require(try await store.claim(worker, limit: 1).first)
      _ = try await store.settle([
        Settlement(taskID: claim.spec.id, epoch: claim.epoch, outcome: .failed(.reset, retryIn: nil))
      ])
      let paused = TaskSpec.noop(host: "paused")
      let later = TaskSpec.noop(host: "later", notBefore: .later)
      _ = try await store.apply([
        .submit(paused), .control(.init(id: .random(), taskID: paused.id, action: .pause)), .submit(later),
      ])
      for round in 0..<5 {
        _ = try await store.apply((0..<20).map { .submit(.noop(queue: "q", host: "h\(round)-\($0)")) })
        let claims = try await store.claim(worker, limit: 50)
        try await store.tidy()
        #expect(try await hosts().isSuperset(of: claims.map { LaneKey($0.spec).host }))
        let ends = claims.map { Settlement(taskID: $0.spec.id, epoch: $0.epoch, outcome: .success) }
        #expect(try await store.settle(ends).allSatisfy { $0 })
        // This claim finds the lanes empty.
        _ = try await store.claim(worker, limit: 50)
        try await store.tidy()
      }
      #expect(try await hosts() == ["limited", "failed", "paused", "later"])
      #expect(try await pool.query("select count(*) from bucket")[0].int64(0) < 40)
      let listed = try await store.tasks(TaskFilter(queue: "q", limit: 200))
      #expect(listed.count == 101, "an ended task still belongs to its queue")
      _ = try await store.apply([
        .control(.init(id: .random(), taskID: failed.id, action: .retry)),
        .control(.init(id: .random(), taskID: paused.id, action: .resume)),
      ])
      #expect(try await store.claim(worker, limit: 9).count == 2)
    }
  }

  /// A producer may send any name.
  @Test("kinds and storages that no task needs are forgotten")
  func kindsAndStoragesThatNobodyNeedsAreForgotten() async throws {
    try await withPostgresStore { store, pool in
      let worker = try await store.register(.sample)
      try await store.setLimit(.kind, name: "limited", to: 3)
      try await store.setLimit(.storage, name: "limited", to: 3)
      func known() async throws -> Set<String> {
        let rows = try await pool.query(
          "select scope || ' ' || name from bucket where scope in ('kind', 'storage') and name <> ''")
        return Set(try rows.map { try $0.text(0) })
      }
      let specs = (["limited"] + (0..<20).map { "name-\($0)" }).map { name in
        TaskSpec(id: .random(), kind: TaskKind(rawValue: name), source: "storage://\(name)/a.mp4")
      }
      _ = try await store.apply(specs.map { .submit($0) } + [.submit(.noop())])
      try await store.tidy()
      #expect(try await known().count == 43, "while there are tasks of them")
      #expect(try await store.claim(worker, limit: 50).count == 1)
      _ = try await store.apply(
        specs.dropLast().map { .control(.init(id: .random(), taskID: $0.id, action: .remove(files: false))) })
      try await store.tidy()
      #expect(
        try await known() == ["kind limited", "storage limited", "kind name-19", "storage name-19", "kind noop"])
      let ids = try await pool.query("select max(id), max(id) filter (where scope <> 'free') from bucket")[0]
      #expect(try ids.int32(0) == ids.int32(1), "a claim's arrays are as long")
      _ = try await store.apply(
        specs.prefix(3).map { .submit(TaskSpec(id: .random(), kind: $0.kind, source: $0.source)) })
      #expect(try await known().count == 9)
      #expect(try await store.audit() == [])
    }
  }

  /// Producers may use a queue for every customer, and every claim looks at each queue.
  @Test("queues that no task needs are forgotten")
  func queuesThatNobodyNeedsAreForgotten() async throws {
    try await withPostgresStore { store, pool in
      let worker = try await store.register(.sample)
      try await store.setWeight(queue: "heavy", to: 3)
      try await store.setLimit(.queue, name: "limited", to: 3)
      func known() async throws -> Set<String> {
        let rows = try await pool.query("select b.name from queue q join bucket b on b.id = q.id and b.scope = 'queue'")
        return Set(try rows.map { try $0.text(0) })
      }
      func run(_ queues: [String], tasks: Int) async throws {
        _ = try await store.apply(queues.flatMap { name in (0..<tasks).map { _ in .submit(.noop(queue: name)) } })
        let claims = try await store.claim(worker, limit: 500)
        #expect(claims.count == queues.count * tasks)
        try await store.tidy()
        let there = try await known()
        #expect(there.isSuperset(of: queues), "while its tasks run")
        let ends = claims.map { Settlement(taskID: $0.spec.id, epoch: $0.epoch, outcome: .success) }
        #expect(try await store.settle(ends).allSatisfy { $0 })
        // This claim finds the lanes empty.
        _ = try await store.claim(worker, limit: 50)
      }
      for round in 0..<5 {
        try await run((0..<20).map { "customer-\(round)-\($0)" } + ["heavy", "limited"], tasks: 2)
        try await store.tidy()
      }
      let waiting = TaskSpec.noop(queue: "waiting", notBefore: .later)
      _ = try await store.apply([.submit(waiting)])
      try await run(["greedy"], tasks: 100)
      try await store.tidy()
      let left = try await known()
      #expect(left.isSuperset(of: ["heavy", "limited", "waiting", "greedy"]))
      #expect(left.count < 30, "\(left)")
      #expect(try await pool.query("select count(*) from bucket")[0].int64(0) < 60)
      #expect(try await store.audit() == [])
    }
  }
}
