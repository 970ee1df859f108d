import ReelhaulMessages
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore

extension PostgresStore {
  package func claim(_ worker: WorkerID, limit: Int, call number: Int64) async throws -> [Claim] {
    try await call {
      let taken = try await pool.query(
        StoreQueries.claim, .int32(worker.rawValue), .int32(Int32(clamping: limit)), .int64(number))
      guard !taken.isEmpty else { return [] as [Claim] }
      // Outside the gate: what the tasks are.
      return try await pool.query(StoreQueries.claimed, .uuids(try taken.map { UniqueID(try $0.uuid(0)) })).map(claim)
    }
  }

  private func claim(_ row: PostgresRow) throws -> Claim {
    var spec = try TaskSpecJSON.decode(try row.bytes(4))
    spec.priority = Int(try row.int16(3))
    var checkpoint: Checkpoint?
    if let generation = try row[5]?.int32() {
      checkpoint = Checkpoint(
        generation: Int(generation), identity: try SourceIdentityJSON.decode(try row.bytes(6)),
        volume: UniqueID(try row.uuid(7)), stagingName: try row.text(8),
        done: try row.int8multirange(9).reduce(into: ByteRanges()) { $0.insert($1) },
        tailCRC: try row[10].map { cell in UInt32(truncatingIfNeeded: try cell.int64()) },
        publishing: try row[11].map { cell in Checkpoint.Publishing(sha256: try cell.bytes()) })
    }
    return Claim(
      spec: spec, epoch: Int(try row.int32(1)), attempt: Int(try row.int16(2)), checkpoint: checkpoint)
  }

  package func checkpoint(_ writes: [CheckpointWrite]) async throws -> [Bool] {
    guard !writes.isEmpty else { return [] }
    let points = writes.map(\.checkpoint)
    return try await call {
      try await pool.query(
        StoreQueries.checkpoint, .uuids(writes.map(\.taskID)),
        .int32Array(writes.map { Int32(clamping: $0.epoch) }),
        .int32Array(points.map { Int32(clamping: $0.generation) }),
        .jsonArray(points.map { SourceIdentityJSON.encode($0.identity) }),
        .uuids(points.map(\.volume)), .textArray(points.map(\.stagingName)),
        .int8multirangeArray(points.map(\.done.ranges)), .int64Array(points.map { $0.tailCRC.map(Int64.init) }),
        .byteaArray(points.map(\.publishing?.sha256))
      ).only.flags(0)
    }
  }

  package func settle(_ settlements: [Settlement]) async throws -> [Bool] {
    guard !settlements.isEmpty else { return [] }
    let ends = settlements.map { RunEnd($0.outcome) }
    return try await call {
      try await pool.query(
        StoreQueries.settle, .uuids(settlements.map(\.taskID)),
        .int32Array(settlements.map { Int32(clamping: $0.epoch) }), .textArray(ends.map(\.outcome)),
        .int64Array(ends.map(\.delayMicroseconds)), .byteaArray(ends.map(\.sha256)), .int64Array(ends.map(\.bytes)),
        .textArray(ends.map(\.failure?.code.rawValue)), .textArray(ends.map(\.failure?.message)),
        .textArray(ends.map(\.failure?.class.rawValue)),
        .int32Array(ends.map { $0.failure?.retryAfter.map { Int32(clamping: $0) } })
      ).only.flags(0)
    }
  }
}

/// A settlement's outcome as the columns of `settle`.
private struct RunEnd {
  var outcome: String
  var delayMicroseconds: Int64?
  var sha256: [UInt8]?
  var bytes: Int64?
  var failure: TaskFailure?

  init(_ outcome: Settlement.Outcome) {
    switch outcome {
    case .succeeded(let sha256, let bytes):
      self.outcome = "succeeded"
      self.sha256 = sha256
      self.bytes = bytes
    case .failed(let failure, let retryIn):
      self.outcome = "failed"
      self.failure = failure
      delayMicroseconds = retryIn?.microseconds
    case .progressed(let failure, let retryIn):
      self.outcome = "progressed"
      self.failure = failure
      delayMicroseconds = retryIn.microseconds
    case .released(let reason, let delay):
      self.outcome = "released"
      failure = reason
      delayMicroseconds = delay.microseconds
    }
  }
}
