import ReelhaulPostgres
import TaskCore

extension PostgresStore: DetailReader {
  private static let checkpoints = PostgresStatement(
    """
    select task_id, version, generation, bytes_done, bytes_total, stage, payload
      from unnest($1) u(id) join checkpoint c on c.task_id = u.id
    """)
  private static let outcomes = PostgresStatement(
    "select i.id, i.code, i.reason from unnest($1) u(id) join command_inbox i on i.id = u.id")

  private static let stopping = PostgresStatement(
    """
    select r.task_id, i.what from unnest($1) u(id) join run r on r.task_id = u.id
      join intent i on i.worker_id = r.worker_id and i.task_id = r.task_id
    """)

  package func checkpoints(of tasks: [UniqueID]) async throws -> [UniqueID: Checkpoint] {
    try await call {
      let rows = try await pool.query(Self.checkpoints, .uuids(tasks))
      let (id, columns) = (try rows.columns["task_id"], try CheckpointColumns(rows.columns, version: "version"))
      var checkpoints: [UniqueID: Checkpoint] = [:]
      for row in rows { checkpoints[try row.id(id)] = try columns.read(row) }
      return checkpoints
    }
  }

  package func stopping(_ tasks: [UniqueID]) async throws -> [UniqueID: ControlAction] {
    guard !tasks.isEmpty else { return [:] }
    return try await call {
      let rows = try await pool.query(Self.stopping, .uuids(tasks))
      let (id, what) = (try rows.columns["task_id"], try rows.columns["what"])
      var stopping: [UniqueID: ControlAction] = [:]
      for row in rows { stopping[try row.id(id)] = try row.text(what) == "pause" ? .pause : .cancel }
      return stopping
    }
  }

  package func outcomes(of commands: [UniqueID]) async throws -> [UniqueID: AppliedCommand] {
    guard !commands.isEmpty else { return [:] }
    return try await call {
      let rows = try await pool.query(Self.outcomes, .uuids(commands))
      let (id, code, reason) = (try rows.columns["id"], try rows.columns["code"], try rows.columns["reason"])
      var outcomes: [UniqueID: AppliedCommand] = [:]
      for row in rows {
        let refusal = try row[code].map { (try $0.text(), try row.text(reason)) }
        outcomes[try row.id(id)] = refusal.map { .refused(code: $0, reason: $1) } ?? .applied
      }
      return outcomes
    }
  }
}
