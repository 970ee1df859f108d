import ReelhaulPostgres
import TaskCore

extension PostgresStore {
  /// How many tasks a page looks at. A page of a rare match takes some ten milliseconds.
  private static let budget: Int32 = 3_000

  package func page(_ filter: TaskFilter) async throws -> TaskPage<TaskDocument> {
    var page = try await call {
      let rows = try await pool.pipeline([PostgresQuery(StoreQueries.list, filter.values(budget: Self.budget))])[0]
      var page = TaskPage(tasks: [TaskDocument]())
      try page.readEnd(rows)
      let (document, id) = (try document(rows.columns), try rows.columns["id"])
      for row in rows where try row[id] != nil { page.tasks.append(try document(row)) }
      return page
    }
    page.tasks = try await explained(page.tasks)
    return page
  }

  package func find(_ filter: TaskFilter, lookingAt most: Int) async throws -> TaskPage<UniqueID> {
    try await call {
      let rows = try await pool.pipeline([
        PostgresQuery(StoreQueries.find, filter.values(budget: Int32(clamping: most)))
      ])[0]
      var page = TaskPage(tasks: try rows.only.ids(try rows.columns["ids"]))
      try page.readEnd(rows)
      return page
    }
  }
}

extension TaskPage {
  /// How the page ended, which every row tells.
  fileprivate mutating func readEnd(_ rows: PostgresRows) throws {
    let columns = rows.columns
    guard let row = rows.first, try !row.bool(columns["is_last"]) else { return }
    let cursor = TaskCursor(createdAt: try row.time(columns["last_at"]), id: try row.id(columns["last_id"]))
    next = cursor
    if try row.bool(columns["is_cut"]) { searchedTo = cursor.createdAt }
  }
}

extension TaskFilter {
  /// The parameters of `find_tasks`.
  fileprivate func values(budget: Int32) -> [PostgresValue] {
    func list(_ words: some Collection<String>) -> PostgresValue {
      words.isEmpty ? .null(.textArray) : .textArray(words.sorted())
    }
    let labels = labels.sorted { $0.key < $1.key }
    return [
      list(states.map(\.rawValue)), list(queues), list(kinds.map(\.rawValue)), list(hosts),
      labels.isEmpty ? .null(.textArray) : .textArray(labels.map(\.key)),
      labels.isEmpty ? .null(.textArray) : .textArray(labels.map { $0.value }),
      .text(text), .timestamptz(createdAfter?.microseconds), .timestamptz(createdBefore?.microseconds),
      .bool(order == .oldestFirst), .timestamptz(cursor?.createdAt.microseconds),
      .id(cursor?.id), .int32(Int32(clamping: limit)), .int32(budget),
      list(codes),
    ]
  }
}
