import ReelhaulPostgres
import TaskCore

extension PostgresStore {
  /// How many tasks are looked at for one question.
  private static let most: Int32 = 5_000

  private static let failureGroups = PostgresStatement(
    """
    select code, host, tasks, newest_at, task_id, is_all from failure_groups($1, $2) order by newest_at desc, task_id
    """)
  private static let hostUses = PostgresStatement(
    "select host, waiting, running, run_limit, bytes_per_second from host_uses($1) order by host")
  private static let storageUses = PostgresStatement(
    "select storage, workers, free, promised, total from storage_uses() order by storage")
  private static let oldest = PostgresStatement(
    """
    select queue, (extract(epoch from now() - min(since)) * 1000000)::bigint age
      from waiting_tasks($1) where since is not null group by queue
    """)
  private static let held = PostgresStatement(
    """
    with waits as materialized (
      select *, sum(runnable + capped + unserved) over (partition by queue, kind) >= $1 is_cut from waiting_tasks($1))
    select b.scope reason, b.name subject, b.run_limit, null::text class, sum(w.capped)::bigint tasks, bool_or(is_cut) is_cut
      from waits w join bucket b on b.id = w.held_by where w.capped > 0 group by b.id
    union all
    select case when lacks_kind then 'no kind' else 'no storage' end, lacks, null, null, sum(unserved)::bigint, bool_or(is_cut)
      from waits where unserved > 0 group by 1, 2
    union all
    select case when code is null then 'scheduled' else 'retrying' end, code, null, class, tasks,
           sum(tasks) over () >= $1
      from delayed_tasks($1)
    union all
    select state, null, null, null, sum(tasks)::bigint, false
      from effective_counts() where state in ('paused', 'blocked') group by state
    """)
  private static let samples = PostgresStatement("select * from fleet_samples($1, $2, $3)")

  package func failures(queues: Set<String>) async throws -> [FailureGroup] {
    let queues = queues.isEmpty ? PostgresValue.null(.textArray) : .textArray(queues.sorted())
    return try await call {
      try await pool.query(Self.failureGroups, queues, .int32(Self.most)).decode { columns in
        let (code, host, tasks) = (try columns["code"], try columns["host"], try columns["tasks"])
        let (newest, task, isAll) = (try columns["newest_at"], try columns["task_id"], try columns["is_all"])
        return { row in
          FailureGroup(
            code: .init(rawValue: try row.text(code)), host: try row.text(host), tasks: try row.int(tasks),
            isAtLeast: try !row.bool(isAll), newestAt: try row.time(newest), taskID: try row.id(task))
        }
      }
    }
  }

  package func hosts() async throws -> [HostUse] {
    try await call {
      try await pool.query(Self.hostUses, .int32(Self.most)).decode { columns in
        let (host, waiting, running) = (try columns["host"], try columns["waiting"], try columns["running"])
        let (limit, rate) = (try columns["run_limit"], try columns["bytes_per_second"])
        return { row in
          HostUse(
            host: try row.text(host), waiting: try row.int(waiting), running: try row.int(running),
            limit: try row[limit].map { Int(try $0.int32()) }, bytesPerSecond: try row.int64(rate))
        }
      }
    }
  }

  package func storages() async throws -> [StorageUse] {
    try await call {
      try await pool.query(Self.storageUses).decode { columns in
        let (storage, workers) = (try columns["storage"], try columns["workers"])
        let (free, promised, total) = (try columns["free"], try columns["promised"], try columns["total"])
        return { row in
          var space: StorageSpace?
          if let free = try row[free]?.int64() {
            space = StorageSpace(free: free, promised: try row.int64(promised), total: try row[total]?.int64())
          }
          return StorageUse(storage: try row.text(storage), workers: try row.int(workers), space: space)
        }
      }
    }
  }

  package func oldestRunnable() async throws -> [String: Duration] {
    try await call {
      var ages: [String: Duration] = [:]
      let rows = try await pool.query(Self.oldest, .int32(Self.most))
      let (queue, age) = (try rows.columns["queue"], try rows.columns["age"])
      for row in rows { ages[try row.text(queue)] = .microseconds(max(0, try row.int64(age))) }
      return ages
    }
  }

  package func heldTasks() async throws -> [HeldTasks] {
    let held = try await call {
      try await pool.query(Self.held, .int32(Self.most)).decode { columns in
        let (reason, subject, limit) = (try columns["reason"], try columns["subject"], try columns["run_limit"])
        let (errorClass, tasks, isCut) = (try columns["class"], try columns["tasks"], try columns["is_cut"])
        return { row in
          let subject = try row[subject]?.text() ?? ""
          let why: HeldTasks.Reason =
            switch try row.text(reason) {
            case "paused": .paused
            case "blocked": .blocked
            case "scheduled": .scheduled
            case "retrying": .retrying(.init(rawValue: subject), try row.known(errorClass))
            case "no kind": .kind(TaskKind(rawValue: subject))
            case "no storage": .storage(subject)
            default:
              .limit(try row.known(reason), name: subject, limit: try row[limit].map { Int(try $0.int32()) } ?? 0)
            }
          return HeldTasks(reason: why, tasks: try row.int(tasks), isAtLeast: try row.bool(isCut))
        }
      }
    }
    return held.sorted { $0.tasks > $1.tasks }
  }

  package func samples(from start: Timestamp, to end: Timestamp, step: Int) async throws -> [FleetSample] {
    try await call {
      try await pool.query(
        Self.samples, .timestamptz(start.microseconds), .timestamptz(end.microseconds), .int32(Int32(clamping: step))
      ).decode { columns in
        let states = try TaskState.allCases.map { ($0, try columns[$0.rawValue]) }
        let ends = try [TaskState.succeeded, .canceled, .failed].map { ($0, try columns["new_\($0.rawValue)"]) }
        let (at, rate) = (try columns["at"], try columns["bytes_per_second"])
        return { row in
          FleetSample(
            at: try row.time(at),
            counts: Dictionary(uniqueKeysWithValues: try states.map { ($0, try row.int($1)) }),
            bytesPerSecond: try row.int64(rate),
            ended: Dictionary(uniqueKeysWithValues: try ends.map { ($0, try row.int($1)) }))
        }
      }
    }
  }
}
