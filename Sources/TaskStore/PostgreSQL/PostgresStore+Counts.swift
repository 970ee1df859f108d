import ReelhaulPostgres
import TaskCore

extension PostgresStore {
  private static let byState = PostgresStatement(
    "select state, sum(tasks)::bigint tasks from effective_counts() group by state")
  private static let all = PostgresStatement("select state, queue, kind, tasks from effective_counts()")
  private static let today = PostgresStatement("select queue, outcome, tasks, bytes from settled_today()")

  package func counts() async throws -> [TaskState: Int] {
    try await call {
      var counts: [TaskState: Int] = [:]
      let rows = try await pool.query(Self.byState)
      let (state, tasks) = (try rows.columns["state"], try rows.columns["tasks"])
      for row in rows where try row.int(tasks) != 0 { counts[try row.known(state)] = try row.int(tasks) }
      return counts
    }
  }

  package func taskCounts() async throws -> [TaskCount] {
    try await call {
      try await pool.query(Self.all).decode { columns in
        let (state, queue) = (try columns["state"], try columns["queue"])
        let (kind, tasks) = (try columns["kind"], try columns["tasks"])
        return { row in
          TaskCount(
            state: try row.known(state), queue: try row.text(queue), kind: TaskKind(rawValue: try row.text(kind)),
            tasks: try row.int(tasks))
        }
      }
    }
  }

  package func settledToday() async throws -> [SettledCount] {
    try await call {
      try await pool.query(Self.today).decode { columns in
        let (queue, outcome) = (try columns["queue"], try columns["outcome"])
        let (tasks, bytes) = (try columns["tasks"], try columns["bytes"])
        return { row in
          SettledCount(
            queue: try row.text(queue), outcome: try row.known(outcome), tasks: try row.int(tasks),
            bytes: try row.int64(bytes))
        }
      }
    }
  }
}
