import ReelhaulPostgres
import TaskCore

extension PostgresStore {
  package func history(of id: UniqueID) async throws -> [HistoryEntry] {
    try await call {
      try await pool.query(StoreQueries.history, .id(id)).decode { columns in
        let (type, sequence, at) = (try columns["type"], try columns["sequence"], try columns["at"])
        let (attempt, epoch) = (try columns["attempt"], try columns["epoch"])
        let (startedAt, worker) = (try columns["started_at"], try columns["worker"])
        let (actor, code) = (try columns["actor"], try columns["error_code"])
        let message = try columns["error_message"]
        return { row in
          HistoryEntry(
            type: try row.text(type), sequence: try row.int(sequence), at: try row.time(at),
            attempt: try row.int(attempt), epoch: try row.int(epoch),
            startedAt: try row.optionalTime(startedAt),
            worker: try row[worker].map { UniqueID(try $0.uuid()) }, actor: try row[actor]?.text(),
            code: try row[code].map { TaskFailure.Code(rawValue: try $0.text()) }, message: try row[message]?.text())
        }
      }
    }
  }

  package func drain(_ boot: UniqueID) async throws -> Bool {
    try await call { try await pool.query(StoreQueries.drain, .id(boot)).value { try $0.bool() } }
  }

  package func mark(_ letter: DeadLetterID, _ mark: DeadLetterMark, actor: String?) async throws {
    try await run(
      StoreQueries.markDeadLetter(
        .int32(letter.partition), .int64(letter.offset), .int64(letter.timestamp), .text(mark.rawValue), .text(actor)))
  }

  package func marks(of letters: [DeadLetterID]) async throws -> [DeadLetterID: DeadLetterMark] {
    guard !letters.isEmpty else { return [:] }
    return try await call {
      let rows = try await pool.query(
        StoreQueries.deadLetterMarks, .int32Array(letters.map(\.partition)), .int64Array(letters.map(\.offset)),
        .int64Array(letters.map(\.timestamp)))
      let (place, mark) = (try rows.columns["place"], try rows.columns["mark"])
      var marks: [DeadLetterID: DeadLetterMark] = [:]
      for row in rows {
        let index = try row.int(place) - 1
        guard letters.indices.contains(index) else { continue }
        marks[letters[index]] = try row.known(mark) as DeadLetterMark
      }
      return marks
    }
  }
}

extension StoreQueries {
  static let history = PostgresStatement(
    """
    select type, sequence::bigint, at, attempt::bigint, epoch::bigint, started_at, worker, actor, error_code,
           error_message
      from task_history where task_id = $1 order by sequence
    """)

  static let drain = PostgresStatement("select drain_worker($1)", writes: true)

  /// $3: milliseconds since 1970.
  static let markDeadLetter = PostgresStatement(
    """
    insert into dead_letter_mark (partition, record_offset, record_at, mark, actor)
    values ($1, $2, to_timestamp($3::bigint / 1000.0), $4, $5)
        on conflict (partition, record_offset, record_at)
        do update set mark = excluded.mark, actor = excluded.actor, at = now()
    """, writes: true)

  static let deadLetterMarks = PostgresStatement(
    """
    select u.place, m.mark
      from unnest($1::int[], $2::bigint[], $3::bigint[]) with ordinality u(partition, record_offset, at, place)
      join dead_letter_mark m
        on (m.partition, m.record_offset, m.record_at) = (u.partition, u.record_offset, to_timestamp(u.at / 1000.0))
    """)
}
