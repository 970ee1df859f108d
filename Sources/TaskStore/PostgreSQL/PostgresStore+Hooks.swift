import ReelhaulCodec
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore

extension PostgresStore {
  package func addHooks(_ events: [HookEvent]) async throws {
    guard !events.isEmpty else { return }
    try await run(
      HookQueries.add(
        .uuids(events.map(\.taskID)), .int32Array(events.map { Int32(clamping: $0.sequence) }),
        .textArray(events.map(\.url)), .textArray(events.map(\.host)), .textArray(events.map(\.kind.rawValue)),
        .jsonArray(events.map(\.json)), .textArray(events.map(\.queue))))
  }

  package func claimHooks(
    _ worker: WorkerID, limit: Int, perHost: Int, besides underWay: [String: Int], failing: Set<String>, places: Int
  ) async throws -> [HookDelivery] {
    let hosts = underWay.flatMap { Array(repeating: $0.key, count: $0.value) }
    return try await call {
      try await pool.query(
        HookQueries.claim, .int32(worker.rawValue), .int32(Int32(clamping: limit)), .int32(Int32(clamping: perHost)),
        .textArray(hosts), .textArray(Array(failing)), .int32(Int32(clamping: places))
      ).decode(delivery)
    }
  }

  package func finishHook(_ task: UniqueID, sequence: Int) async throws {
    try await run(HookQueries.finish(.id(task), .int32(Int32(clamping: sequence))))
  }

  package func postponeHook(_ task: UniqueID, sequence: Int, after delay: Duration, error: String) async throws {
    try await run(
      HookQueries.postpone(
        .id(task), .int32(Int32(clamping: sequence)), .int64(delay.microseconds), .text(error.storable)))
  }

  package func giveUpHook(_ task: UniqueID, sequence: Int, error: String) async throws -> Int {
    try await call {
      let given = try await pool.query(
        HookQueries.giveUp, .id(task), .int32(Int32(clamping: sequence)), .text(error.storable))
      return try given.decode { columns in
        let count = try columns["count"]
        return { row in try row.int(count) }
      }.first ?? 0
    }
  }

  package func undeliveredHooks(of task: UniqueID) async throws -> [HookDelivery] {
    try await call {
      try await pool.query(HookQueries.undelivered, .id(task)).decode(delivery)
    }
  }

  package func queueHooks() async throws -> [String: String] {
    try await call {
      let rows = try await pool.query(HookQueries.queues)
      let (queue, url) = (try rows.columns["queue"], try rows.columns["url"])
      var hooks: [String: String] = [:]
      for row in rows { hooks[try row.text(queue)] = try row.text(url) }
      return hooks
    }
  }

  package func setQueueHook(_ queue: String, to url: String?) async throws {
    var query = HookQueries.setQueue(.text(queue), .text(url))
    while try await !call({ [query] in try await pool.pipeline([query])[0].value { try $0.bool() } }) {
      // Another change may have come since.
      query = HookQueries.moveHooks(.text(queue))
    }
  }

  package func goOnMovingHooks() async throws {
    try await run(HookQueries.goOnMoving())
  }

  package func waitingHooks() async throws -> [HookBacklog] {
    try await call {
      let rows = try await pool.query(HookQueries.waiting, .int32(Int32(FleetGauges.limit)))
      let (host, events) = (try rows.columns["host"], try rows.columns["events"])
      let (age, error) = (try rows.columns["age"], try rows.columns["error"])
      return try rows.map { row in
        HookBacklog(
          host: try row.text(host), events: Int(try row.int64(events)),
          age: .microseconds(max(0, try row.int64(age))), error: try row[error]?.text())
      }
    }
  }

  private func delivery(_ columns: PostgresColumns) throws -> (PostgresRow) throws -> HookDelivery {
    let (id, sequence, type) = (try columns["task_id"], try columns["sequence"], try columns["type"])
    let (url, host, event) = (try columns["url"], try columns["host"], try columns["event"])
    let queue = try columns["queue"]
    let (attempt, created, runAt) = (try columns["attempt"], try columns["created_at"], try columns["run_at"])
    let (error, gaveUp, age) = (try columns["error"], try columns["gave_up_at"], try columns["age"])
    return { row in
      HookDelivery(
        event: HookEvent(
          taskID: try row.id(id), sequence: try row.int(sequence), kind: try row.known(type), url: try row.text(url),
          host: try row.text(host), json: try row.bytes(event), queue: try row[queue]?.text()),
        attempt: try row.int(attempt), createdAt: try row.time(created),
        age: .microseconds(try row.int64(age)), runAt: try row.time(runAt),
        error: try row[error]?.text(),
        gaveUpAt: try row.optionalTime(gaveUp))
    }
  }
}

private enum HookQueries {
  private static let columns = """
    task_id, sequence, type, url, host, event, queue, attempt, created_at, run_at, error, gave_up_at,
    (extract(epoch from now() - created_at) * 1000000)::bigint age
    """

  static let add = PostgresStatement("select add_hooks($1, $2, $3, $4, $5, $6, $7)", writes: true)
  static let claim = PostgresStatement("select \(columns) from claim_hooks($1, $2, $3, $4, $5, $6)", writes: true)
  static let finish = PostgresStatement("select finish_hook($1, $2)", writes: true)
  static let postpone = PostgresStatement("select postpone_hook($1, $2, $3, $4)", writes: true)
  static let giveUp = PostgresStatement("select give_up_hook($1, $2, $3) count", writes: true)
  static let undelivered = PostgresStatement(
    "select \(columns) from hook_delivery where task_id = $1 order by sequence limit 100")
  static let queues = PostgresStatement("select queue, url from queue_hook")
  static let waiting = PostgresStatement(
    """
    select host, events, (extract(epoch from now() - since) * 1000000)::bigint age, error from waiting_hooks($1)
    """)
  static let setQueue = PostgresStatement("select set_queue_hook($1, $2)", writes: true)
  static let moveHooks = PostgresStatement("select move_hooks($1)", writes: true)
  static let goOnMoving = PostgresStatement("select go_on_moving_hooks()", writes: true)
}
