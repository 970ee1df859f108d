import ReelhaulMessages
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore

extension PostgresStore {
  package func claimCleanups(
    _ worker: WorkerID, limit: Int, except busy: Set<CleanupLine>
  ) async throws -> [Cleanup] {
    let busy = Array(busy)
    return try await call {
      try await pool.query(
        StoreQueries.claimCleanups, .int32(worker.rawValue), .int32(Int32(clamping: limit)),
        .textArray(busy.map(\.kind.rawValue)), .textArray(busy.map(\.storage)), .textArray(busy.map(\.sourceStorage))
      ).map(cleanup)
    }
  }

  private func cleanup(_ row: PostgresRow) throws -> Cleanup {
    var checkpoint: Checkpoint?
    if let version = try row[2]?.int16() {
      checkpoint = Checkpoint(
        version: Int(version), generation: Int(try row.int32(3)), bytesDone: try row.int64(4),
        bytesTotal: try row[5]?.int64(), stage: try row[6]?.text(), payload: try row.bytes(7))
    }
    return Cleanup(
      id: try row.int64(0), spec: try TaskSpecJSON.decode(try row.bytes(1)), checkpoint: checkpoint,
      files: try row.bool(8), attempt: Int(try row.int32(9)))
  }

  package func finishCleanups(_ ids: [Int64]) async throws {
    guard !ids.isEmpty else { return }
    _ = try await call { try await pool.query(StoreQueries.finishCleanups, .int64Array(ids)) }
  }

  package func postponeCleanup(_ id: Int64, after delay: Duration, error: String) async throws {
    _ = try await call {
      try await pool.query(StoreQueries.postponeCleanup, .int64(id), .int64(delay.microseconds), .text(error))
    }
  }
}
