import ReelhaulCodec
import ReelhaulMessages
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore

extension PostgresStore {
  package func claimCleanups(
    _ worker: WorkerID, limit: Int, except busy: Set<CleanupLine>
  ) async throws -> [Cleanup] {
    let busy = Array(busy)
    let (cleanups, unreadable) = try await call {
      let rows = try await pool.query(
        StoreQueries.claimCleanups, .int32(worker.rawValue), .int32(Int32(clamping: limit)),
        .textArray(busy.map(\.kind.rawValue)), .textArray(busy.map(\.storage)), .textArray(busy.map(\.sourceStorage)))
      let (id, read) = (try rows.columns["id"], try cleanup(rows.columns))
      var (cleanups, unreadable): ([Cleanup], [Int64: DecodingFailure]) = ([], [:])
      for row in rows {
        do {
          cleanups.append(try read(row))
        } catch let failure as DecodingFailure {
          unreadable[try row.int64(id)] = failure
        }
      }
      return (cleanups, unreadable)
    }
    // Somebody has written into the database: they hold up none of the others.
    for (id, failure) in unreadable {
      try await postponeCleanup(id, after: Self.unreadableWait, error: "it cannot be read: \(failure)")
    }
    return cleanups
  }

  private static let unreadableWait = Duration.seconds(3600)

  private func cleanup(_ columns: PostgresColumns) throws -> (PostgresRow) throws -> Cleanup {
    let (id, spec) = (try columns["id"], try columns["spec"])
    let checkpoint = try CheckpointColumns(columns, version: "version")
    let (files, attempt) = (try columns["files"], try columns["attempt"])
    let (kind, storage, sourceStorage) = (
      try columns["kind"], try columns["storage"], try columns["source_storage"]
    )
    return { row in
      Cleanup(
        id: try row.int64(id), spec: try TaskSpecJSON.read(try row.bytes(spec)), checkpoint: try checkpoint.read(row),
        files: try row.bool(files), attempt: try row.int(attempt),
        line: CleanupLine(
          kind: TaskKind(rawValue: try row.text(kind)), storage: try row.text(storage),
          sourceStorage: try row.text(sourceStorage)))
    }
  }

  package func finishCleanups(_ ids: [Int64]) async throws {
    guard !ids.isEmpty else { return }
    try await run(StoreQueries.finishCleanups(.int64Array(ids)))
  }

  package func returnCleanups(_ ids: [Int64]) async throws {
    guard !ids.isEmpty else { return }
    try await run(StoreQueries.returnCleanups(.int64Array(ids)))
  }

  package func postponeCleanup(_ id: Int64, after delay: Duration, error: String) async throws {
    try await run(StoreQueries.postponeCleanup(.int64(id), .int64(delay.microseconds), .text(error.storable)))
  }
}

/// The columns of a checkpoint, in a row that may have none.
struct CheckpointColumns {
  private let version, generation, bytesDone, bytesTotal, stage, payload: PostgresColumn

  init(_ columns: PostgresColumns, version: String) throws {
    self.version = try columns[version]
    generation = try columns["generation"]
    bytesDone = try columns["bytes_done"]
    bytesTotal = try columns["bytes_total"]
    stage = try columns["stage"]
    payload = try columns["payload"]
  }

  func read(_ row: PostgresRow) throws -> Checkpoint? {
    guard let version = try row[version]?.int16() else { return nil }
    return Checkpoint(
      version: Int(version), generation: try row.int(generation), bytesDone: try row.int64(bytesDone),
      bytesTotal: try row[bytesTotal]?.int64(), stage: try row[stage]?.text(), payload: try row.bytes(payload))
  }
}
