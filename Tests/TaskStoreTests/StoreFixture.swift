import MemoryTaskStore
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// Every implementation of the protocol. All of them pass the same suite.
enum StoreKind: String, CaseIterable, CustomTestStringConvertible {
  case memory, postgres

  var testDescription: String { rawValue }
}

/// An empty store, with functions that change its time for a test.
struct StoreFixture: Sendable {
  var store: any TaskStore
  /// Ends the worker's lease.
  var expireLease: @Sendable (WorkerID) async throws -> Void
  /// Makes a delayed task due.
  var makeDue: @Sendable (UniqueID) async throws -> Void
  /// Lets the deliveries of a task wait for so many days already.
  var ageHooks: @Sendable (UniqueID, Int) async throws -> Void

  func worker(
    _ boot: UniqueID = .random(), kinds: [TaskKind] = [.noop, .download], volumes: [String] = ["default"]
  ) async throws -> WorkerID {
    try await store.register(
      WorkerRegistration(
        boot: boot, host: "test", pid: 1, leaseSeconds: 3600, kinds: kinds,
        volumes: Dictionary(uniqueKeysWithValues: volumes.map { ($0, UniqueID.random()) })))
  }

  @discardableResult
  func submit(_ specs: TaskSpec...) async throws -> [CommandOutcome] {
    try await store.apply(specs.map(Command.submit))
  }

  @discardableResult
  func control(_ action: ControlAction, _ task: UniqueID, id: UniqueID = .random()) async throws -> CommandOutcome {
    try await store.apply([.control(Command.Control(id: id, taskID: task, action: action))])[0]
  }

  @discardableResult
  func settle(_ claim: Claim, _ outcome: Settlement.Outcome) async throws -> Bool {
    try await store.settle([Settlement(taskID: claim.spec.id, epoch: claim.epoch, outcome: outcome)])[0]
  }

  func state(_ id: UniqueID) async throws -> TaskState? {
    try await store.task(id)?.state
  }

  /// The kinds of the events of one task, in order. Their numbers must run from 1 without a gap.
  func events(_ id: UniqueID) async throws -> [TaskEvent.Kind] {
    let events = try await store.pendingEvents(limit: 10_000).events.filter { $0.taskID == id }
    #expect(events.map(\.sequence) == Array(1...max(1, events.count)))
    return events.map(\.kind)
  }
}

/// Runs `body` on an empty store. After that, the audit must find nothing.
func withStore(_ kind: StoreKind, _ body: @escaping @Sendable (StoreFixture) async throws -> Void) async throws {
  switch kind {
  case .memory:
    let store = MemoryStore()
    try await body(
      StoreFixture(
        store: store, expireLease: { store.expireLease(of: $0) }, makeDue: { store.makeDue($0) },
        ageHooks: { store.ageHooks(of: $0, days: $1) }))
    #expect(try await store.audit() == [])
  case .postgres:
    try await withPostgresStore { store, pool in
      try await body(
        StoreFixture(
          store: store,
          expireLease: { worker in
            _ = try await pool.query(
              "update worker set lease_until = now() - interval '1 s' where id = $1", .int32(worker.rawValue))
          },
          makeDue: { task in
            _ = try await pool.query(
              "update delayed set run_at = now() where task_id = $1", .uuid(task.high, task.low))
          },
          ageHooks: { task, days in
            _ = try await pool.query(
              """
              update hook_delivery set created_at = created_at - make_interval(days => $2) where task_id = $1
              """, .uuid(task.high, task.low), .int32(Int32(days)))
          }))
    }
  }
}

/// The same, with the pool behind the store. No calls may have waited for each other in a circle: the store would
/// repeat such a call, but late.
func withPostgresStore(
  schema: @escaping @Sendable (PostgresPool) async throws -> Void = { _ = try await Schema.migrator($0).apply() },
  _ body: @escaping @Sendable (PostgresStore, PostgresPool) async throws -> Void
) async throws {
  let loop = EventLoop(name: "store-test")
  let configuration = try PostgresConfiguration.patient(url: try await TestPostgres.shared.database())
  let pool = PostgresPool(loop: loop, configuration: configuration, size: 8)
  let result = await loop.task {
    try await schema(pool)
    let store = PostgresStore(pool: pool)
    try await body(store, pool)
    #expect(try await store.audit() == [])
  }.result
  await pool.close()  // ends the sessions, which then report their counters
  let last = PostgresPool(loop: loop, configuration: configuration, size: 1)
  let deadlocks = await loop.task {
    let others = PostgresStatement(
      """
      select from pg_stat_activity
       where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
      """)
    try await eventually("the sessions have ended") { try await last.query(others).isEmpty }
    return try await last.query("select deadlocks from pg_stat_database where datname = current_database()").first?
      .int64(0)
  }.result
  await last.close()
  loop.shutdown()
  try result.get()
  #expect(try deadlocks.get() == 0, "deadlocks")
}

extension TaskStore {
  /// Claims tasks with a new call number.
  func claim(_ worker: WorkerID, limit: Int) async throws -> [Claim] {
    try await claim(worker, limit: limit, call: ClaimCalls.next())
  }
}

extension TaskStore {
  /// Takes the next events from the outbox, like the relay. `repeating` makes each of the calls for this.
  func takeEvents(
    limit: Int, repeating call: (() async throws -> Void) async throws -> Void = { try await $0() }
  ) async throws -> [TaskEvent] {
    var pending = PendingEvents()
    try await call { pending = try await pendingEvents(limit: limit) }
    try await call { try await discardEvents(pending.wholeRows) }
    if let batch = pending.cutBatch { try await call { try await discardFirstEvents(batch) } }
    return pending.events
  }
}

/// Rising numbers for the claim calls of all tests.
enum ClaimCalls {
  private static let last = Lock(Int64(0))

  static func next() -> Int64 {
    last.withLock { last in
      last += 1
      return last
    }
  }
}

extension TaskSpec {
  static func noop(
    _ id: UniqueID = .random(), priority: Int = 0, queue: String = "default", host: String? = nil,
    after: [UniqueID] = [],
    notBefore: Timestamp? = nil, destination: String? = nil
  ) -> TaskSpec {
    TaskSpec(
      id: id, kind: .noop, source: host.map { "https://\($0)/a" } ?? "https://example.com/a",
      destination: destination, priority: priority, queue: queue, after: after, notBefore: notBefore)
  }
}

extension Timestamp {
  /// The year 2100.
  static let later = Timestamp(microseconds: 4_102_444_800_000_000)
}

extension Settlement.Outcome {
  static let success = Settlement.Outcome.succeeded(sha256: nil, bytes: 1)
  static let handBack = Settlement.Outcome.released(reason: nil, delay: .zero)
}

extension TaskFailure {
  static let reset = TaskFailure(
    code: .init(rawValue: "connection_reset"), message: "The server hung up.", class: .retry)
}

extension CheckpointWrite {
  static func sample(_ task: UniqueID, epoch: Int) -> CheckpointWrite {
    CheckpointWrite(
      taskID: task, epoch: epoch,
      checkpoint: Checkpoint(
        version: 3, generation: 2, bytesTotal: 9000, payload: Array(#"{"of":["the","kind"]}"#.utf8)))
  }
}

extension CommandOutcome {
  func isRefused(code: String) -> Bool {
    if case .refused(let its, _) = self { its == code } else { false }
  }
}
