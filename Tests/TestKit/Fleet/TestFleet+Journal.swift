import ReelhaulPostgres
import ReelhaulSystem
import TaskCore

/// A change to a row of `run`, `checkpoint`, `task` or `worker`, as recorded by the database.
package struct JournalEntry: Sendable {
  /// The role that made the change: see ``TestFleet/startWorker(named:through:)``.
  package var role: String
  /// `INSERT run`, `UPDATE worker` …
  package var change: String
  package var task: UniqueID?
  package var epoch: Int?
  package var worker: Int32?
  /// Microseconds of the database's clock, since 2000.
  package var at: Int64
  /// For a row of `worker`, on the same clock.
  package var leaseUntil: Int64?
}

/// How a task moved from one worker to the next.
package struct TakeOver: Sendable {
  /// The end of the former owner's lease, and the next claim: microseconds of the database's clock.
  package var leaseUntil: Int64
  package var claimedAt: Int64
  /// How often one other worker renewed its lease in between, every 500 ms. It measures the time even on a slow
  /// machine.
  package var renewals: Int

  /// With more ``renewals`` than this, something other than the sweep has found the task.
  package static let prompt = 8
}

extension TestFleet {
  /// From now on the database records who changes which row.
  package func keepJournal() async throws {
    let tables = ["run": "task_id", "checkpoint": "task_id", "task": "id", "worker": "id"]
    let triggers = tables.map { table, _ in
      "create trigger journal after insert or update or delete on \(table) for each row execute function keep_journal();"
    }
    _ = try await pool.withConnection {
      try await $0.script(
        """
        create table journal (
          id bigint generated always as identity, role text default session_user, change text,
          task_id uuid, epoch int, worker_id int, at timestamptz default clock_timestamp(), lease_until timestamptz);
        create function keep_journal() returns trigger language plpgsql as $$
        declare
          entry jsonb := case tg_op when 'DELETE' then to_jsonb(old) else to_jsonb(new) end;
        begin
          insert into journal (change, task_id, epoch, worker_id, lease_until) values (
            tg_op || ' ' || tg_table_name,
            case tg_table_name when 'worker' then null when 'task' then entry->>'id' else entry->>'task_id' end::uuid,
            (entry->>'epoch')::int,
            case tg_table_name when 'worker' then entry->>'id' when 'run' then entry->>'worker_id' end::int,
            (entry->>'lease_until')::timestamptz);
          return null;
        end $$;
        \(triggers.joined(separator: "\n"))
        """)
    }
  }

  /// The changes so far, in order.
  package func journal() async throws -> [JournalEntry] {
    try await pool.query(
      "select role, change, task_id, epoch, worker_id, at, lease_until from journal order by id"
    ).map { row in
      let task = try row[2]?.uuid()
      return JournalEntry(
        role: try row.text(0), change: try row.text(1), task: task.map { UniqueID(high: $0.high, low: $0.low) },
        epoch: try row[3].map { Int(try $0.int32()) }, worker: try row[4]?.int32(), at: try row.timestamp(5),
        leaseUntil: try row[6]?.timestamp())
    }
  }

  /// How the task was taken over from the owner of `epoch`; nil if it was not yet.
  package func takeOver(of task: UniqueID, from epoch: Int) async throws -> TakeOver? {
    let entries = try await journal()
    let claims = entries.filter { $0.change == "INSERT run" && $0.task == task }
    guard let former = claims.first(where: { $0.epoch == epoch })?.worker,
      let next = claims.first(where: { $0.epoch == epoch + 1 })
    else { return nil }
    let renewals = entries.filter { $0.change == "UPDATE worker" && $0.at < next.at }
    guard let lease = renewals.last(where: { $0.worker == former })?.leaseUntil else { return nil }
    let others = renewals.filter { $0.worker != former && $0.at > lease }
    let most = Dictionary(grouping: others, by: \.worker).values.map(\.count).max()
    return TakeOver(leaseUntil: lease, claimedAt: next.at, renewals: most ?? 0)
  }

  /// The database's time, on the clock of the journal.
  package func databaseTime() async throws -> Int64 {
    try await pool.query("select clock_timestamp()")[0].timestamp(0)
  }
}
