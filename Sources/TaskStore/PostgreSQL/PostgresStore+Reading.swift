import ReelhaulMessages
import ReelhaulPostgres
import TaskCore

extension PostgresStore {
  /// After this many events, no further row of the outbox is read.
  private static let eventsAtOnce: Int64 = 10_000
  /// The approximate size of the events that one call returns, with the specifications of their tasks.
  private static let bytesAtOnce = 3 << 20

  package func pendingRows() async throws -> ClosedRange<Int64>? {
    try await call {
      let row = try await pool.query(StoreQueries.pendingRows).only
      guard let first = try row[0]?.int64(), let last = try row[1]?.int64() else { return nil }
      return first...last
    }
  }

  package func pendingEvents(limit: Int, excluding excluded: [Int64]) async throws -> PendingEvents {
    let batches = try await call {
      try await pool.query(
        StoreQueries.pendingEvents, .int64(Int64(limit)), .int64(Self.eventsAtOnce), .int64Array(excluded)
      ).map(batch)
    }
    return try await withTasks(PendingEvents(batches: batches, tasks: [:]))
  }

  /// Adds the tasks of the events. Keeps as many of the first events as fit; the others wait for the next call.
  private func withTasks(_ events: PendingEvents) async throws -> PendingEvents {
    var seen: Set<UniqueID> = []
    let all = events.batches.flatMap(\.events).map(\.task)
    let ids = all.filter { seen.insert($0).inserted }
    guard !ids.isEmpty else { return events }
    return try await call {
      var pending = events
      var sizes: [UniqueID: Int] = [:]
      pending.tasks.reserveCapacity(ids.count)
      // Each event includes its task, so a task with several events counts several times.
      let share = Int64(Self.bytesAtOnce * ids.count / all.count)
      var bytes: Int64 = 0
      for row in try await pool.query(StoreQueries.pendingDocuments, .uuids(ids), .int64(share)) {
        bytes = try row.int64(22)
        let id = UniqueID(try row.uuid(0))
        pending.tasks[id] = try document(row)
        sizes[id] = try row.bytes(3).count
      }
      // A missing task before the last row was removed. If the query did not stop at its limit, all missing tasks were.
      let end = bytes < share ? ids.count : (ids.lastIndex { sizes[$0] != nil } ?? -1) + 1
      for id in ids[..<end] { sizes[id] = sizes[id] ?? 0 }
      pending.cut(to: Self.bytesAtOnce) { sizes[$0] }
      return pending
    }
  }

  private func batch(_ row: PostgresRow) throws -> OutboxBatch {
    let tasks = try row.array(3) { cell throws(PostgresError) in UniqueID(try cell.uuid()) }
    let sequences = try row.array(4) { cell throws(PostgresError) in Int(try cell.int32()) }
    return OutboxBatch(
      row: try row.int64(0), kind: try row.known(1), at: Timestamp(microseconds: try row.timestamp(2)),
      events: Array(zip(tasks, sequences)))
  }

  package func discardEvents(_ rows: [Int64]) async throws {
    guard !rows.isEmpty else { return }
    _ = try await call { try await pool.query(StoreQueries.discardEvents, .int64Array(rows)) }
  }

  package func discardFirstEvents(_ batch: OutboxBatch) async throws {
    guard let first = batch.events.first else { return }
    _ = try await call {
      try await pool.query(
        StoreQueries.discardFirstEvents, .int64(batch.row), .int32(Int32(clamping: batch.events.count)),
        .uuid(first.task.high, first.task.low), .int32(Int32(clamping: first.sequence)))
    }
  }

  package func tasks(_ ids: [UniqueID]) async throws -> [UniqueID: TaskDocument] {
    guard !ids.isEmpty else { return [:] }
    let documents = try await call { try await pool.query(StoreQueries.documents, .uuids(ids)).map(document) }
    return Dictionary(try await explained(documents).map { ($0.spec.id, $0) }) { $1 }
  }

  package func states(of ids: [UniqueID]) async throws -> [UniqueID: TaskState] {
    try await call {
      var states: [UniqueID: TaskState] = [:]
      for row in try await pool.query(StoreQueries.states, .uuids(ids)) {
        let state: TaskState = try row.known(1)
        states[UniqueID(try row.uuid(0))] = state
      }
      return states
    }
  }

  package func tasks(_ filter: TaskFilter) async throws -> [TaskDocument] {
    let documents = try await call {
      try await pool.query(
        StoreQueries.list, .text(filter.state?.rawValue), .text(filter.queue), .int32(Int32(clamping: filter.limit))
      ).map(document)
    }
    return try await explained(documents)
  }

  /// Adds the reason to tasks that wait for a storage that no worker has.
  private func explained(_ documents: [TaskDocument]) async throws -> [TaskDocument] {
    guard documents.contains(where: \.mayWaitForStorage) else { return documents }
    let usable = try await call {
      try await pool.query(StoreQueries.usableStorage).map { row in
        Set(try row.array(0) { cell throws(PostgresError) in try cell.text() })
      }
    }
    return documents.map { $0.explained(usable: usable) }
  }

  package func workers() async throws -> [WorkerDocument] {
    try await call { try await pool.query(StoreQueries.workers).map(worker) }
  }

  private func worker(_ row: PostgresRow) throws -> WorkerDocument {
    let volumes = zip(
      try row.array(6) { cell throws(PostgresError) in try cell.text() },
      try row.array(7) { cell throws(PostgresError) in UniqueID(try cell.uuid()) })
    let labels = zip(
      try row.array(8) { cell throws(PostgresError) in try cell.text() },
      try row.array(9) { cell throws(PostgresError) in try cell.text() })
    let kinds = try row.array(12) { cell throws(PostgresError) in TaskKind(rawValue: try cell.text()) }
    return WorkerDocument(
      id: UniqueID(try row.uuid(0)), host: try row.text(1), pid: try row.int32(2),
      startedAt: Timestamp(microseconds: try row.timestamp(3)),
      leaseUntil: Timestamp(microseconds: try row.timestamp(4)), isLive: try row.bool(5),
      running: Int(try row.int64(10)), kinds: Set(kinds), volumes: Dictionary(volumes) { $1 },
      labels: Dictionary(labels) { $1 }, bytesPerSecond: try row.int64(11))
  }

  package func backlog() async throws -> Backlog {
    try await call {
      let row = try await pool.query(StoreQueries.backlog).only
      let kinds = try row.array(0) { cell throws(PostgresError) in TaskKind(rawValue: try cell.text()) }
      let storages = try row.array(1) { cell throws(PostgresError) in try cell.text() }
      return Backlog(
        kinds: Set(kinds), storages: Set(storages), eventAge: .microseconds(try row.int64(2)))
    }
  }

  package func counts() async throws -> [TaskState: Int] {
    try await call {
      var counts: [TaskState: Int] = [:]
      for row in try await pool.query(StoreQueries.counts) { counts[try row.known(0)] = Int(try row.int64(1)) }
      return counts
    }
  }

  package func audit() async throws -> [String] {
    try await call { try await pool.query(StoreQueries.audit).map { try $0.text(0) } }
  }

  /// Reads the columns of ``StoreQueries/documents``, in their order.
  private func document(_ row: PostgresRow) throws -> TaskDocument {
    var spec = try TaskSpecJSON.decode(try row.bytes(3))
    spec.priority = Int(try row.int16(2))
    var error: TaskFailure?
    if let code = try row[17]?.text() {
      error = TaskFailure(
        code: .init(rawValue: code), message: try row.text(18), class: try row.known(19),
        retryAfter: try row[20].map { Int(try $0.int32()) })
    }
    return TaskDocument(
      spec: spec, state: try row.known(1), bytesTotal: try row[10]?.int64(), bytesDone: try row.int64(9),
      rate: try row[11]?.int64(), attempt: Int(try row.int16(4)), worker: try row[8].map { UniqueID(try $0.uuid()) },
      epoch: Int(try row.int32(5)), generation: Int(try row.int32(7)), sequence: Int(try row.int32(6)),
      createdAt: Timestamp(microseconds: try row.timestamp(12)), startedAt: try timestamp(row[13]),
      finishedAt: try timestamp(row[14]), runAt: try timestamp(row[15]), sha256: try row[16]?.bytes(),
      output: try row[21]?.bytes(), error: error)
  }

  private func timestamp(_ cell: PostgresCell?) throws -> Timestamp? {
    try cell.map { Timestamp(microseconds: try $0.timestamp()) }
  }
}
