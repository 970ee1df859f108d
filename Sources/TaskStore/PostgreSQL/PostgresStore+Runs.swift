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
      // A separate statement, so that the gate is not held while the tasks are read.
      return try await pool.query(StoreQueries.claimed, .uuids(try taken.map { UniqueID(try $0.uuid(0)) })).map(claim)
    }
  }

  private func claim(_ row: PostgresRow) throws -> Claim {
    var spec = try TaskSpecJSON.decode(try row.bytes(4))
    spec.priority = Int(try row.int16(3))
    var checkpoint: Checkpoint?
    if let version = try row[5]?.int16() {
      checkpoint = Checkpoint(
        version: Int(version), generation: Int(try row.int32(6)), bytesDone: try row.int64(7),
        bytesTotal: try row[8]?.int64(), stage: try row[9]?.text(), payload: try row.bytes(10))
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
        .int16Array(points.map { Int16(clamping: $0.version) }),
        .int32Array(points.map { Int32(clamping: $0.generation) }), .int64Array(points.map(\.bytesDone)),
        .int64Array(points.map(\.bytesTotal)), .textArray(points.map(\.stage)), .jsonArray(points.map(\.payload))
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
        .jsonArray(ends.map(\.output)),
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
  var output: [UInt8]?
  var failure: TaskFailure?

  init(_ outcome: Settlement.Outcome) {
    switch outcome {
    case .succeeded(let sha256, let bytes, let output):
      self.outcome = "succeeded"
      self.output = output
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
