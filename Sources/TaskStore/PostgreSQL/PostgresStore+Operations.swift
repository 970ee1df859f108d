import ReelhaulCodec
import ReelhaulMessages
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore

extension PostgresStore {
  /// How many tasks one look examines.
  private static let examined = 5000

  package func createOperation(_ operation: TaskOperation) async throws -> TaskOperation {
    var priority: Int16?
    if case .prioritize(let number) = operation.action { priority = Int16(clamping: number) }
    var filter: [UInt8]?
    var ids: PostgresValue = .null(.uuidArray)
    switch operation.selection {
    case .filter(let its): filter = JSONWriter.write { its.write(to: &$0, order: operation.order) }
    case .ids(let its): ids = .uuids(its)
    }
    let created = try await call {
      try await pool.query(
        StoreQueries.createOperation, .id(operation.id), .text(operation.action.name),
        .int16(priority), .bool(operation.action == .remove(files: true)), .json(filter), ids,
        operation.queues.map { .textArray($0) } ?? .null(.textArray), .text(operation.actor),
        .int32(Int32(TaskOperation.mostUnfinished))
      ).decode(Self.operation).first
    }
    if let created { return try await waiting([created])[0] }
    guard let known = try await self.operation(operation.id) else { throw TooManyOperations() }
    return known
  }

  package func operationTime() async throws -> Timestamp {
    try await call {
      let rows = try await pool.query(StoreQueries.operationTime)
      return try rows.only.time(try rows.columns["now"])
    }
  }

  package func operation(_ id: UniqueID) async throws -> TaskOperation? {
    let found = try await call {
      try await pool.query(StoreQueries.operation, .id(id)).decode(Self.operation)
    }
    return try await waiting(found).first
  }

  package func operations(limit: Int, within queues: Set<String>?) async throws -> [TaskOperation] {
    let newest = try await call {
      try await pool.query(
        StoreQueries.operations, .int32(Int32(clamping: limit)),
        queues.map { .textArray(Array($0)) } ?? .null(.textArray)
      ).decode(Self.readable)
    }
    return try await waiting(newest.compactMap(\.operation))
  }

  /// The same ones, which tell what they wait for.
  private func waiting(_ operations: [TaskOperation]) async throws -> [TaskOperation] {
    let looking = operations.filter(\.looksForTasks)
    guard let newest = looking.map(\.createdAt).max() else { return operations }
    let words = Set(looking.map { Self.word(for: $0.action) })
    let unfinished = try await call {
      try await pool.query(
        StoreQueries.unfinishedOperations, .textArray(Array(words)), .timestamptz(newest.microseconds)
      ).decode(Self.readable)
    }.compactMap(\.operation)
    return operations.map { operation in
      var operation = operation
      operation.waitsFor = unfinished.first(where: operation.waits(for:)).map { .init(id: $0.id, action: $0.action) }
      return operation
    }
  }

  /// An action in one word, as ``StoreQueries/unfinishedOperations`` makes it of its columns.
  private static func word(for action: ControlAction) -> String {
    switch action {
    case .prioritize(let number): "\(action.name) \(number) f"
    default: "\(action.name) \(action == .remove(files: true) ? "t" : "f")"
    }
  }

  package func cancelOperation(_ id: UniqueID) async throws -> TaskOperation? {
    try await run(StoreQueries.cancelOperation(.id(id)))
    return try await operation(id)
  }

  package func takeOperations(
    _ driver: UniqueID, seconds: Int, limit: Int, only: UniqueID?
  ) async throws -> [TaskOperation] {
    var taken: [TaskOperation] = []
    var unreadable: [UniqueID] = []
    var (idle, known) = (0, 0)
    // The oldest come first: more are taken, so that those of a newer program and those that wait, for
    // another one or for their commands, keep no other ones from being driven. Twice as many, so that few looks are enough
    // for many.
    repeat {
      known = idle
      let most = limit + 2 * known
      let rows = try await call {
        try await pool.query(
          StoreQueries.takeOperations, .id(driver), .int32(Int32(clamping: seconds)),
          .int32(Int32(clamping: most)), .id(only)
        ).decode(Self.readable)
      }
      taken = try await waiting(rows.compactMap(\.operation))
      unreadable = rows.filter { $0.operation == nil }.map(\.id)
      idle = unreadable.count + taken.count { $0.waitsFor != nil || $0.progress.isWalked }
    } while idle > known
    guard !unreadable.isEmpty else { return taken }
    let others = unreadable
    try await run(StoreQueries.giveBackOperations(.uuids(others), .id(driver)))
    return taken
  }

  package func walk(
    _ filter: OperationFilter, _ order: TaskOrder, after position: TaskCursor?, limit: Int
  ) async throws -> TaskWalk {
    // What no task has ends the walk. An operation of an earlier version may ask for it.
    guard let labels = try? TaskFilter.labels(filter.labels) else { return TaskWalk() }
    let page = try await find(
      TaskFilter(
        states: Set(filter.states), queues: Set(filter.queues), kinds: Set(filter.kinds), hosts: Set(filter.hosts),
        codes: Set(filter.codes), labels: labels, text: filter.text, createdAfter: filter.after,
        createdBefore: filter.before, order: order, cursor: position, limit: limit),
      lookingAt: Self.examined)
    let states = try await states(of: page.tasks)
    var walk = TaskWalk()
    // A task that was removed meanwhile is gone.
    walk.tasks = try await found(page.tasks.compactMap { id in states[id].map { FoundTask(id: id, state: $0) } })
    walk.next = page.next
    return walk
  }

  package func find(_ ids: [UniqueID], before time: Timestamp, queues: [String]?) async throws -> [FoundTask] {
    try await found(
      call {
        let rows = try await pool.query(
          StoreQueries.findTasks, .uuids(ids), .timestamptz(time.microseconds),
          queues.map { .textArray($0) } ?? .null(.textArray))
        let (id, state) = (try rows.columns["id"], try rows.columns["state"])
        return try rows.map { FoundTask(id: try $0.id(id), state: try $0.known(state)) }
      })
  }

  /// The same tasks, with those that are pausing.
  private func found(_ tasks: [FoundTask]) async throws -> [FoundTask] {
    let stopping = try await stopping(tasks.filter(\.state.isOwned).map(\.id))
    guard !stopping.isEmpty else { return tasks }
    return tasks.map { FoundTask(id: $0.id, state: $0.state, isPausing: stopping[$0.id] == .pause) }
  }

  package func advance(_ operation: UniqueID, _ driver: UniqueID, _ step: OperationStep) async throws -> Bool {
    let refusals = JSONWriter.write { json in
      json.object { json in
        for (code, count) in step.refusals {
          json.name(code)
          json.integer(count)
        }
      }
    }
    let last = PostgresValue.id(step.position?.id)
    return try await call {
      try await pool.query(
        StoreQueries.advanceOperation, .id(operation), .id(driver),
        .uuids(step.tasks), .int32(Int32(clamping: step.matched)), .json(refusals),
        .timestamptz(step.position?.createdAt.microseconds), last, .int32(Int32(clamping: step.lookedAt)),
        .bool(step.isAtEnd)
      ).value { try $0.bool() }
    }
  }

  package func batches(of operation: UniqueID) async throws -> [OperationBatch] {
    try await call {
      try await pool.query(StoreQueries.operationBatches, .id(operation)).decode { columns in
        let (number, tasks) = (try columns["number"], try columns["task_ids"])
        let (isSent, isApplied) = (try columns["is_sent"], try columns["is_applied"])
        return { row in
          OperationBatch(
            number: try row.int64(number), tasks: try row.ids(tasks), isSent: try row.bool(isSent),
            isApplied: try row.bool(isApplied))
        }
      }
    }
  }

  package func noteSent(_ operation: UniqueID, batch number: Int64) async throws {
    try await run(StoreQueries.sentBatch(.id(operation), .int64(number)))
  }

  package func count(
    _ operation: UniqueID, batch number: Int64, commands: [UniqueID], anyway: Bool
  ) async throws -> Bool {
    try await call {
      try await pool.query(
        StoreQueries.countBatch, .id(operation), .int64(number), .uuids(commands), .bool(anyway)
      ).value { try $0.bool() }
    }
  }

  package func finish(_ operation: UniqueID, _ driver: UniqueID, error: String?) async throws {
    try await run(StoreQueries.finishOperation(.id(operation), .id(driver), .text(error?.storable)))
  }

  /// An operation that a newer program has made may be none that this one can read: then it is nil.
  private static func readable(
    _ columns: PostgresColumns
  ) throws -> (PostgresRow) throws -> (id: UniqueID, operation: TaskOperation?) {
    let (id, operation) = (try columns["id"], try operation(columns))
    return { row in
      do {
        return (try row.id(id), try operation(row))
      } catch is DecodingFailure {
        return (try row.id(id), nil)
      } catch StoreError.schema {
        return (try row.id(id), nil)
      }
    }
  }

  private static func operation(_ columns: PostgresColumns) throws -> (PostgresRow) throws -> TaskOperation {
    let (id, action, priority) = (try columns["id"], try columns["action"], try columns["priority"])
    let (files, filter, ids) = (try columns["files"], try columns["filter"], try columns["ids"])
    let (queues, actor, createdAt) = (try columns["queues"], try columns["actor"], try columns["created_at"])
    let (state, finishedAt, error) = (try columns["state"], try columns["finished_at"], try columns["error"])
    let (afterAt, afterID) = (try columns["after_at"], try columns["after_id"])
    let (lookedAt, isWalked, matched) = (try columns["looked_at"], try columns["is_walked"], try columns["matched"])
    let (sent, applied, refused) = (try columns["sent"], try columns["applied"], try columns["refused"])
    let (refusals, idle, idCount) = (try columns["refusals"], try columns["idle"], try columns["id_count"])
    return { row in
      let name = try row.text(action)
      guard
        let action = ControlAction(
          name: name, priority: try row[priority].map { Int(try $0.int16()) }, files: try row.bool(files))
      else { throw StoreError.schema("the database knows an operation “\(name)”, which this program does not") }
      var selection = TaskOperation.Selection.filter(OperationFilter())
      // Earlier versions stored none.
      var order: TaskOrder? = .newestFirst
      if let filter = try row[filter]?.bytes() {
        // Without a condition that it does not know, it would select more tasks than it should.
        selection = .filter(
          try JSONReader.read(filter, refusingUnknownNames: true) { reader throws(DecodingFailure) in
            try OperationFilter(from: &reader, order: &order)
          })
      } else {
        selection = .ids(try row.ids(ids))
      }
      var operation = TaskOperation(
        id: try row.id(id), action: action, selection: selection,
        queues: try row[queues] == nil ? nil : try row.texts(queues), actor: try row[actor]?.text(),
        createdAt: try row.time(createdAt))
      operation.order = order ?? .newestFirst
      operation.idCount = try row.int(idCount)
      operation.state = try row.known(state)
      operation.finishedAt = try row.optionalTime(finishedAt)
      operation.error = try row[error]?.text()
      if let at = try row.optionalTime(afterAt) {
        operation.progress.position = TaskCursor(createdAt: at, id: try row.id(afterID))
      }
      operation.progress.lookedAt = try row.int(lookedAt)
      operation.progress.isWalked = try row.bool(isWalked)
      operation.progress.matched = try row.int64(matched)
      operation.progress.sent = try row.int64(sent)
      operation.progress.applied = try row.int64(applied)
      operation.progress.refused = try row.int64(refused)
      operation.progress.idle = .microseconds(try row.int64(idle))
      operation.progress.refusals = try JSONReader.read(try row.bytes(refusals)) { reader throws(DecodingFailure) in
        var counts: [String: Int64] = [:]
        try reader.object { reader, name throws(DecodingFailure) in counts[name.text] = try reader.integer() }
        return counts
      }
      return operation
    }
  }
}

extension StoreQueries {
  private static let operationColumns = columns(ids: "ids")
  /// Of one that has ended, nothing needs the ids themselves, which may be 10,000.
  private static let listedColumns = columns(ids: "case when finished_at is null then ids else ids[:0] end ids")

  private static func columns(ids: String) -> String {
    """
    id, action, priority, files, filter, \(ids), coalesce(cardinality(ids), 0) id_count, queues, actor, created_at, state,
    finished_at, error, after_at, after_id, looked_at, is_walked, matched, sent, applied, refused, refusals::json refusals,
    (extract(epoch from now() - moved_at) * 1000000)::bigint idle
    """
  }

  /// Returns no row if it was created before, or if its actor has as many as it may have.
  static let createOperation = PostgresStatement(
    """
    insert into operation (id, action, priority, files, filter, ids, queues, actor)
    select $1, $2, $3, $4, $5, $6, $7, $8
     where (select count(*) from operation where finished_at is null and actor is not distinct from $8) < $9
        on conflict (id) do nothing
    returning \(operationColumns)
    """, writes: true)
  static let operationTime = PostgresStatement("select now() now")
  static let operation = PostgresStatement("select \(operationColumns) from operation where id = $1")
  static let operations = PostgresStatement(
    """
    select \(listedColumns) from operation where $2::text[] is null or queues <@ $2
     order by created_at desc, id desc limit $1
    """)

  /// Those for which operations with the actions $1, made until $2, may wait: each may name 10,000 tasks, and many have
  /// one action.
  static let unfinishedOperations = PostgresStatement(
    """
    select \(operationColumns) from operation
     where finished_at is null and created_at <= $2
       and exists (select from unnest($1::text[]) a(word) where a.word <> concat_ws(' ', action, priority, files))
     order by created_at, id
    """)
  static let cancelOperation = PostgresStatement(
    "update operation set state = 'canceled' where id = $1 and state = 'running'", writes: true)
  static let takeOperations = PostgresStatement(
    "select \(operationColumns) from take_operations($1, $2, $3, $4) order by created_at, id", writes: true)
  static let giveBackOperations = PostgresStatement(
    "update operation set driver = null, lease_until = '-infinity' where id = any($1) and driver = $2", writes: true)
  static let findTasks = PostgresStatement(
    """
    select d.id, d.state from task_documents($1) d
     where d.created_at < $2 and ($3::text[] is null or coalesce(d.spec ->> 'queue', 'default') = any($3))
    """)
  static let advanceOperation = PostgresStatement(
    "select advance_operation($1, $2, $3, $4, $5::jsonb, $6, $7, $8, $9)", writes: true)
  static let operationBatches = PostgresStatement(
    "select number, task_ids, is_sent, is_applied from operation_batch where operation_id = $1 order by number")
  static let sentBatch = PostgresStatement("select sent_batch($1, $2)", writes: true)
  static let countBatch = PostgresStatement("select count_batch($1, $2, $3, $4)", writes: true)
  static let finishOperation = PostgresStatement("select finish_operation($1, $2, $3)", writes: true)
}
