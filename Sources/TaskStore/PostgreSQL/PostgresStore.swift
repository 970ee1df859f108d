import ReelhaulCodec
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore

/// The store in PostgreSQL. Every call is a few statements over arrays; most calls are one function of the schema.
///
/// A call that throws ``StoreError/unavailable(_:cause:)`` may be repeated, even though it may have been applied:
/// commands have ids, runs have epochs, and claims have numbers.
package final class PostgresStore: TaskStore {
  let pool: PostgresPool
  /// For the worker that relays.
  let snapshots = Lock(RunningSnapshots())

  package init(pool: PostgresPool) {
    self.pool = pool
  }

  /// Runs a call and decodes its result. Repeats it if the server ended it because of a deadlock or a lost race.
  func call<Result>(_ body: () async throws -> Result) async throws -> Result {
    var attempt = 1
    while true {
      do {
        return try await body()
      } catch let error as PostgresError where error.isLostRace && attempt < 10 {
        attempt += 1
      } catch let error as PostgresError where error.isForeignSchema {
        // The versions say more than the function or the column that is missing.
        throw await schemaNeed().map(StoreError.schema) ?? StoreError(error)
      } catch let error as PostgresError {
        // Another server may answer from now on, without the last transactions.
        if [.connection, .commitUnknown].contains(error.code) { doubtEvents() }
        throw StoreError(error)
      } catch let error as DecodingFailure {
        throw StoreError.schema("the database contains a value that this program cannot read: \(error)")
      }
    }
  }

  /// Runs a statement whose rows tell nothing.
  func run(_ query: PostgresQuery) async throws {
    _ = try await call { try await pool.pipeline([query]) }
  }

  package func topicPrefix() async throws -> String? {
    try await call { try await pool.query(StoreQueries.topicPrefix).values { try $0.text() }.first }
  }

  package func bind(topicPrefix: String) async throws {
    try await checkSchema()
    let bound = try await call { try await pool.query(StoreQueries.bind, .text(topicPrefix)).value { try $0.text() } }
    guard bound == topicPrefix else {
      throw StoreError.otherFleet(OtherFleet(recorded: bound, configured: topicPrefix))
    }
  }

  package func checkSchema() async throws {
    let plan: MigrationPlan
    do {
      plan = try await call { try await Schema.migrator(pool).plan() }
    } catch let error as MigrationError {
      throw StoreError.otherSchema("\(error)")
    }
    guard !plan.isUpToDate else { return }
    if plan.newerRevision != nil { throw StoreError.otherSchema(plan.need) }
    throw StoreError.schema(plan.need)
  }

  /// Why the schema does not fit this program; nil if it does, or cannot be read.
  private func schemaNeed() async -> String? {
    do {
      let plan = try await Schema.migrator(pool).plan()
      return plan.isUpToDate ? nil : plan.need
    } catch let error as MigrationError {
      return "\(error)"
    } catch {
      return nil
    }
  }

  package func register(_ worker: WorkerRegistration) async throws -> WorkerID {
    let volumes = VolumeColumns(worker.volumes)
    let labels = worker.labels.sorted { $0.key < $1.key }
    return try await call {
      let rows = try await pool.query(
        StoreQueries.register, .id(worker.boot), .text(worker.host), .int32(worker.pid),
        .int32(Int32(clamping: worker.leaseSeconds)), .textArray(worker.kinds.map(\.rawValue)),
        .int32Array(worker.kinds.map { worker.kindLimits[$0].map { Int32(clamping: $0) } }),
        .textArray(worker.kinds.map { worker.formerNames[$0]?.rawValue }), volumes.names, volumes.ids,
        .textArray(labels.map(\.key)), .textArray(labels.map(\.value)), .text(worker.version))
      return WorkerID(rawValue: try rows.value { try $0.int32() })
    }
  }

  package func renew(_ worker: WorkerID, samples: [ProgressSample]) async throws -> Renewal {
    // One transaction. The lease comes last, so that its row is locked as briefly as possible.
    var queries = [StoreQueries.renew(.int32(worker.rawValue))]
    if !samples.isEmpty { queries.insert(progress(samples), at: 0) }
    return try await call {
      var renewal = Renewal(isAlive: false)
      let rows = try await pool.pipeline(queries)[queries.count - 1]
      let (task, what) = (try rows.columns["task_id"], try rows.columns["what"])
      for row in rows {
        renewal.isAlive = true
        if let task = try row[task]?.uuid() {
          renewal.intents[UniqueID(task)] = try row.known(what) as Intent
        } else if try row[what]?.text() == "drain" {
          renewal.isDraining = true
        }
      }
      return renewal
    }
  }

  private func progress(_ samples: [ProgressSample]) -> PostgresQuery {
    StoreQueries.recordProgress(
      .uuids(samples.map(\.taskID)),
      .int32Array(samples.map { Int32(clamping: $0.epoch) }),
      .int64Array(samples.map(\.bytesDone)), .int64Array(samples.map(\.bytesTotal)),
      .int64Array(samples.map(\.rate)))
  }

  package func announce(_ worker: WorkerID, volumes: [String: UniqueID]) async throws {
    let volumes = VolumeColumns(volumes)
    try await run(StoreQueries.announce(.int32(worker.rawValue), volumes.names, volumes.ids))
  }

  package func measure(_ worker: WorkerID, spaces: [String: StorageSpace]) async throws {
    let spaces = spaces.sorted { $0.key < $1.key }
    try await run(
      StoreQueries.measure(
        .int32(worker.rawValue), .textArray(spaces.map(\.key)),
        .int64Array(spaces.map(\.value.free)), .int64Array(spaces.map(\.value.promised)),
        .int64Array(spaces.map(\.value.total))))
  }

  package func tell(_ worker: WorkerID, hostLimits: [String: HostLimit]) async throws {
    let limits = hostLimits.sorted { $0.key < $1.key }
    try await run(
      StoreQueries.tellHostLimits(
        .int32(worker.rawValue), .textArray(limits.map(\.key)),
        .int32Array(limits.map { Int32(clamping: $0.value.most) }), .boolArray(limits.map(\.value.isRefusing))))
  }

  package func endOutages(of servers: [TaskServer: Duration]) async throws {
    try await run(
      StoreQueries.endOutages(
        .textArray(servers.map(\.key.name)), .textArray(Set(servers.map(\.key.host))),
        .int64Array(servers.map(\.value.microseconds))))
  }

  package func note(_ failures: [ServerFailure]) async throws -> [Bool] {
    try await call {
      try await pool.query(
        StoreQueries.noteFailures, .textArray(failures.map(\.server.name)), .textArray(failures.map(\.server.host)),
        .boolArray(failures.map(\.isWholeHost)), .boolArray(failures.map(\.isOut)),
        .boolArray(failures.map(\.isUnreachable)), .int64Array(failures.map(\.failing.microseconds)),
        .textArray(failures.map(\.failure.code.rawValue)), .textArray(failures.map(\.failure.message.storable))
      ).value { try $0.flags() }
    }
  }

  package func limitedHosts() async throws -> Set<String> {
    Set(try await call { try await pool.query(StoreQueries.limitedHosts).values { try $0.text() } })
  }

  package func leave(_ worker: WorkerID) async throws {
    try await run(StoreQueries.leave(.int32(worker.rawValue)))
  }

  package func renewed(within time: Duration) async throws -> [WorkerID] {
    try await call {
      try await pool.query(StoreQueries.renewedWithin, .int64(time.microseconds)).values {
        WorkerID(rawValue: try $0.int32())
      }
    }
  }

  package func time() async throws -> Timestamp {
    try await call {
      let rows = try await pool.query(StoreQueries.time)
      return try rows.only.time(try rows.columns["now"])
    }
  }

  package func retire(_ worker: WorkerID) async throws {
    try await run(StoreQueries.retire(.int32(worker.rawValue)))
  }

  package func sweep() async throws -> SweepResult {
    try await call {
      let rows = try await pool.query(StoreQueries.sweep)
      let (row, columns) = (try rows.only, rows.columns)
      return SweepResult(
        expired: try row.int(columns["expired"]), due: try row.int(columns["due"]),
        workers: try row.int(columns["workers"]))
    }
  }

  package func putLearnedLimitsInForce() async throws {
    try await run(StoreQueries.putLearnedLimitsInForce())
    // Each locks the buckets of its hosts in order, which is none for both together.
    try await run(StoreQueries.putOutagesInForce())
  }

  package func endStalledBatches(silentFor silence: Duration) async throws -> Int {
    try await call {
      try await pool.query(StoreQueries.endStalledBatches, .int64(silence.microseconds)).value { Int(try $0.int32()) }
    }
  }

  package func restLanes() async throws {
    try await run(StoreQueries.restLanes())
  }

  package func tidy() async throws {
    var failure: (any Error)?
    func step(_ work: () async throws -> Void) async {
      do { try await work() } catch { failure = failure ?? error }
    }
    // One that takes too long keeps none of the others from being done.
    await step { try await run(StoreQueries.dropOldInbox()) }
    await step { try await restLanes() }
    // The sweep waits for them. The next call goes on.
    for statement in [StoreQueries.tidyLanes, StoreQueries.tidyBuckets] {
      let end = BootInstant.now + .seconds(3)
      await step {
        while try await call({ try await pool.query(statement).value { try $0.bool() } }), !end.hasPassed {}
      }
    }
    if let failure { throw failure }
  }

  package func setLimit(_ scope: LimitScope, name: String, to limit: Int?) async throws {
    try await run(StoreQueries.setLimit(.text(scope.rawValue), .text(name), .int32(limit.map { Int32(clamping: $0) })))
  }

  package func setWeight(queue: String, to weight: Double) async throws {
    try await run(StoreQueries.setWeight(.text(queue), .double(weight)))
  }

  package func limits() async throws -> [LimitUse] {
    try await call {
      try await pool.query(StoreQueries.limits).decode { columns in
        let (scope, name, running) = (try columns["scope"], try columns["name"], try columns["used"])
        let (limit, declared) = (try columns["run_limit"], try columns["declared_limit"])
        let learned = try columns["learned_limit"]
        let outageLimit = try columns["outage_limit"]
        let outage = OutageColumns(
          server: try columns["outage_server"], since: try columns["outage_since"], probeAt: try columns["probe_at"],
          code: try columns["error_code"], message: try columns["error_message"])
        let formerNames = try columns["former_names"]
        let weight = try columns["weight"]
        return { row in
          LimitUse(
            scope: try row.known(scope), name: try row.text(name), running: try row.int(running),
            limit: try row[limit].map { Int(try $0.int32()) }, weight: try row[weight]?.double(),
            declared: try row[declared].map { Int(try $0.int32()) },
            learned: try row[learned].map { Int(try $0.int32()) }, outage: try outage.outage(in: row),
            outageLimit: try row[outageLimit].map { Int(try $0.int32()) },
            formerNames: try row.array(formerNames) { cell throws(PostgresError) in try cell.text() })
        }
      }.inOrder()
    }
  }

  package func lead(_ worker: WorkerID, seconds: Int) async throws -> Bool {
    try await call {
      try await pool.query(StoreQueries.lead, .int32(worker.rawValue), .int32(Int32(clamping: seconds))).value {
        try $0.bool()
      }
    }
  }
}

extension MigrationPlan {
  /// Why this program cannot work with the database, and the command that helps.
  fileprivate var need: String {
    if current == 0 { return "the database has no schema of reelhaul yet: 'reelhaul migrate' creates it" }
    if newerRevision != nil {
      return "the functions in the database were made by a newer program: upgrade this one"
    }
    if pending.isEmpty {
      return "the functions in the database differ from those of this program: 'reelhaul migrate' replaces them"
    }
    return """
      the database's schema has version \(current), but this program needs version \(current + pending.count): \
      'reelhaul migrate' updates it
      """
  }
}

/// A worker's volumes as two parallel arrays.
private struct VolumeColumns {
  var names: PostgresValue
  var ids: PostgresValue

  init(_ volumes: [String: UniqueID]) {
    let volumes = volumes.sorted { $0.key < $1.key }
    names = .textArray(volumes.map(\.key))
    ids = .uuids(volumes.map(\.value))
  }
}

/// The columns of a ``HostOutage``, which are null together.
private struct OutageColumns {
  var server: PostgresColumn
  var since: PostgresColumn
  var probeAt: PostgresColumn
  var code: PostgresColumn
  var message: PostgresColumn

  func outage(in row: PostgresRow) throws(PostgresError) -> HostOutage? {
    guard try row[server] != nil else { return nil }
    return HostOutage(
      server: try row.text(server), since: try row.time(since), probeAt: try row.time(probeAt),
      code: TaskFailure.Code(rawValue: try row.text(code)), message: try row.text(message))
  }
}
