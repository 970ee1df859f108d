import ReelhaulCodec
import ReelhaulMessages
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore

extension PostgresStore {
  /// After this many events, no further row of the outbox is read.
  private static let eventsAtOnce: Int64 = 10_000

  package func pendingRows() async throws -> ClosedRange<Int64>? {
    try await call {
      let rows = try await pool.query(StoreQueries.pendingRows)
      guard let first = try rows.only[rows.columns["lowest"]]?.int64(),
        let last = try rows.only[rows.columns["highest"]]?.int64()
      else { return nil }
      return first...last
    }
  }

  package func doubtEvents() { snapshots.withLock { $0 = RunningSnapshots() } }

  package func pendingEvents(limit: Int, bytes: Int, excluding excluded: [Int64]) async throws -> PendingEvents {
    if snapshots.withLock({ $0.doubtedTo == nil }) {
      let last = try await pendingRows()?.upperBound ?? 0
      snapshots.withLock { $0.doubtedTo = last }
    }
    let rows = try await call {
      try await pool.query(
        StoreQueries.pendingEvents, .int64(Int64(limit)), .int64(Self.eventsAtOnce), .int64Array(excluded),
        .int64(Int64(bytes))
      ).decode(OutboxRow.reader)
    }
    return try await withTasks(rows, most: bytes)
  }

  /// Adds the tasks of the events. Reads those of which the rows do not tell enough. Keeps as many of the first events
  /// as fit; the others wait for the next call.
  private func withTasks(_ rows: [OutboxRow], most: Int) async throws -> PendingEvents {
    var pending = PendingEvents(batches: rows.map(\.batch))
    guard let last = rows.last else { return pending }
    pending.hasMore = last.hasNext
    var (known, missing) = snapshots.withLock { $0.follow(rows) }
    return try await call {
      var ids = missing.map(\.id)
      if !missing.isEmpty {
        // Each event includes its task, so a task with several events counts several times.
        let share = max(Int64(most * missing.count / pending.eventCount), 1)
        let events = Dictionary(uniqueKeysWithValues: missing.map { ($0.id, $0.event) })
        let rows = try await pool.query(StoreQueries.pendingDocuments, .uuids(ids), .int64(share))
        let document = try document(rows.columns)
        let (total, spec) = (try rows.columns["bytes"], try rows.columns["spec"])
        var bytes: Int64 = 0
        for row in rows {
          bytes = try row.int64(total)
          let task = try document(row)
          known[task.spec.id] = TaskSnapshot(
            task: task, size: try row.bytes(spec).count, event: events[task.spec.id] ?? task.sequence)
        }
        // A missing task before the last row was removed. If the query did not stop at its limit, all missing tasks were.
        if bytes >= share { ids = Array(ids.prefix(through: ids.lastIndex { known[$0] != nil } ?? 0)) }
      }
      snapshots.withLock { $0.keep(ids.compactMap { known[$0] }) }
      pending.tasks = known.mapValues(\.task)
      let gone = Set(ids).subtracting(known.keys)
      pending.cut(to: most) { known[$0]?.bytes ?? (gone.contains($0) ? 0 : nil) }
      if !ids.isEmpty { snapshots.withLock { $0.note(pending.tasks, read: ids, with: pending.batches) } }
      if !gone.isEmpty { pending.removed = try await specs(ofRemoved: gone, in: rows) }
      return pending
    }
  }

  /// What `rows` tell of removed tasks, or else the row of their removal, which waits behind these rows.
  private func specs(ofRemoved ids: Set<UniqueID>, in rows: [OutboxRow]) async throws -> [UniqueID: TaskSpec] {
    var specs: [UniqueID: TaskSpec] = [:]
    var missing = ids
    for row in rows {
      for ((id, _), detail) in zip(row.batch.events, row.details) where ids.contains(id) {
        if let spec = detail?.spec { specs[id] = spec }
        if row.batch.kind == .removed || detail?.spec != nil { missing.remove(id) }
      }
    }
    guard !missing.isEmpty else { return specs }
    let others = try await pool.query(StoreQueries.removedSpecs, .uuids(Array(missing)))
    let (id, spec) = (try others.columns["id"], try others.columns["spec"])
    // One that cannot be read has no hook.
    for row in others { specs[try row.id(id)] = try? TaskSpecJSON.read(try row.bytes(spec)) }
    return specs
  }

  package func discardEvents(_ rows: [Int64]) async throws {
    guard !rows.isEmpty else { return }
    try await run(StoreQueries.discardEvents(.int64Array(rows)))
  }

  package func discardFirstEvents(_ batch: OutboxBatch) async throws {
    guard let first = batch.events.first else { return }
    try await run(
      StoreQueries.discardFirstEvents(
        .int64(batch.row), .int32(Int32(clamping: batch.events.count)),
        .id(first.task), .int32(Int32(clamping: first.sequence))))
  }

  package func tasks(_ ids: [UniqueID]) async throws -> [UniqueID: TaskDocument] {
    guard !ids.isEmpty else { return [:] }
    let documents = try await call { try await pool.query(StoreQueries.documents, .uuids(ids)).decode(document) }
    return Dictionary(try await explained(documents).map { ($0.spec.id, $0) }) { $1 }
  }

  package func states(of ids: [UniqueID]) async throws -> [UniqueID: TaskState] {
    try await call {
      var states: [UniqueID: TaskState] = [:]
      let rows = try await pool.query(StoreQueries.states, .uuids(ids))
      let (id, state) = (try rows.columns["id"], try rows.columns["state"])
      for row in rows { states[try row.id(id)] = try row.known(state) as TaskState }
      return states
    }
  }

  package func removed(among ids: [UniqueID]) async throws -> [UniqueID: Bool] {
    guard !ids.isEmpty else { return [:] }
    return try await call {
      let rows = try await pool.query(StoreQueries.removed, .uuids(ids))
      let (id, succeeded) = (try rows.columns["id"], try rows.columns["succeeded"])
      return try Dictionary(uniqueKeysWithValues: rows.map { (try $0.id(id), try $0.bool(succeeded)) })
    }
  }

  package func unfinished(derived ids: [UniqueID]) async throws -> Set<UniqueID> {
    let origins = ids.flatMap { id in id.origins.map { (id: id, range: $0) } }
    guard !origins.isEmpty else { return [] }
    return try await call {
      let places = try await pool.query(
        StoreQueries.unfinished, .uuids(origins.map(\.range.lowerBound)), .uuids(origins.map(\.range.upperBound))
      ).values { Int(try $0.int64()) }
      return Set(places.map { origins[$0 - 1].id })
    }
  }

  package func ids(ending: IDEnding, limit: Int) async throws -> [UniqueID] {
    let bytes = Hex.decode(String(ending.digits.suffix(ending.digits.count / 2 * 2)))
    return try await call {
      let rows = try await pool.query(
        StoreQueries.idsEnding, .bytea(bytes), .text(ending.digits), .int32(Int32(clamping: limit)))
      let id = try rows.columns["id"]
      return try rows.map { try $0.id(id) }
    }
  }

  /// Adds the reason to tasks that wait for a storage that no worker has.
  func explained(_ documents: [TaskDocument]) async throws -> [TaskDocument] {
    guard documents.contains(where: \.mayWaitForStorage) else { return documents }
    let usable = try await call {
      try await pool.query(StoreQueries.usableStorage).values { names in
        Set(try names.array { cell throws(PostgresError) in try cell.text() })
      }
    }
    return documents.map { $0.explained(usable: usable) }
  }

  package func workers() async throws -> [WorkerDocument] {
    try await call { try await pool.query(StoreQueries.workers).decode(worker) }
  }

  private func worker(_ columns: PostgresColumns) throws -> (PostgresRow) throws -> WorkerDocument {
    let (boot, host, pid) = (try columns["boot"], try columns["host"], try columns["pid"])
    let (startedAt, leaseUntil) = (try columns["started_at"], try columns["lease_until"])
    let (isLive, running, rate) = (try columns["is_live"], try columns["running"], try columns["rate"])
    let (volumeNames, volumeIDs) = (try columns["volume_names"], try columns["volume_ids"])
    let (labelNames, labelValues) = (try columns["label_names"], try columns["label_values"])
    let kinds = try columns["kinds"]
    let (draining, version, leaseAge) = (try columns["draining"], try columns["version"], try columns["lease_age"])
    return { row in
      WorkerDocument(
        id: try row.id(boot), host: try row.text(host), pid: try row.int32(pid), startedAt: try row.time(startedAt),
        leaseUntil: try row.time(leaseUntil), isLive: try row.bool(isLive), running: try row.int(running),
        kinds: Set(try row.texts(kinds).map(TaskKind.init(rawValue:))),
        volumes: Dictionary(zip(try row.texts(volumeNames), try row.ids(volumeIDs))) { $1 },
        labels: Dictionary(zip(try row.texts(labelNames), try row.texts(labelValues))) { $1 },
        bytesPerSecond: try row.int64(rate), isDraining: try row.bool(draining), version: try row[version]?.text(),
        leaseAge: .microseconds(try row.int64(leaseAge)))
    }
  }

  package func backlog() async throws -> Backlog {
    try await call {
      let rows = try await pool.query(StoreQueries.backlog)
      let columns = rows.columns
      let (kind, storage) = (try columns["kind"], try columns["storage"])
      let (source, age) = (try columns["source_storage"], try columns["event_age"])
      var backlog = Backlog()
      for row in rows {
        backlog.eventAge = .microseconds(try row.int64(age))
        guard let kind = try row[kind]?.text() else { continue }
        backlog.kinds.insert(TaskKind(rawValue: kind))
        let (destination, source) = (try row.text(storage), try row.text(source))
        backlog.storages.formUnion([destination, source].filter { !$0.isEmpty })
        if !source.isEmpty { backlog.pairs.insert(StoragePair(source: source, destination: destination)) }
      }
      return backlog
    }
  }

  package func audit() async throws -> [String] {
    // It reads all rows.
    try await call { try await pool.query(StoreQueries.audit, timeout: .seconds(3600)).values { try $0.text() } }
  }

  func document(_ columns: PostgresColumns) throws -> (PostgresRow) throws -> TaskDocument {
    let (id, spec, priority) = (try columns["id"], try columns["spec"], try columns["priority"])
    let state = try columns["state"]
    let (attempt, epoch, sequence) = (try columns["attempt"], try columns["epoch"], try columns["sequence"])
    let (generation, worker, output) = (try columns["generation"], try columns["worker"], try columns["output"])
    let (bytesDone, bytesTotal, rate) = (try columns["bytes_done"], try columns["bytes_total"], try columns["rate"])
    let (createdAt, startedAt) = (try columns["created_at"], try columns["started_at"])
    let (finishedAt, runAt, sha256) = (try columns["finished_at"], try columns["run_at"], try columns["sha256"])
    let (code, message) = (try columns["error_code"], try columns["error_message"])
    let (errorClass, retryAfter) = (try columns["error_class"], try columns["error_retry_after"])
    return { row in
      var error: TaskFailure?
      var its: TaskSpec
      let json = try row.bytes(spec)
      do throws(DecodingFailure) {
        its = try TaskSpecJSON.read(json)
      } catch let failure {
        // Somebody has written into the database: the others are shown, and so is this one as far as it can be.
        its = TaskSpec(id: try row.id(id), kind: TaskKind(rawValue: "unreadable"), source: "")
        error = TaskFailure(
          code: .specUnreadable, message: "the database has a specification that is none: \(failure)", class: .wait)
      }
      its.priority = try row.int(priority)
      if let code = try row[code]?.text() {
        error = TaskFailure(
          code: .init(rawValue: code), message: try row.text(message), class: try row.known(errorClass),
          retryAfter: try row[retryAfter].map { Int(try $0.int32()) })
      }
      return TaskDocument(
        spec: its, state: try row.known(state), bytesTotal: try row[bytesTotal]?.int64(),
        bytesDone: try row.int64(bytesDone), rate: try row[rate]?.int64(), attempt: try row.int(attempt),
        worker: try row[worker].map { UniqueID(try $0.uuid()) }, epoch: try row.int(epoch),
        generation: try row.int(generation), sequence: try row.int(sequence), createdAt: try row.time(createdAt),
        startedAt: try row.optionalTime(startedAt), finishedAt: try row.optionalTime(finishedAt),
        runAt: try row.optionalTime(runAt),
        sha256: try row[sha256]?.bytes(), output: try row[output]?.bytes(), error: error)
    }
  }
}
