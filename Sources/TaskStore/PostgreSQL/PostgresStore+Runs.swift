import ReelhaulMessages
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore

extension PostgresStore {
  package func claim(_ worker: WorkerID, limit: Int, call number: Int64) async throws -> [Claim] {
    try await call {
      let taken = try await pool.query(
        StoreQueries.claim, .int32(worker.rawValue), .int32(Int32(clamping: limit)), .int64(number))
      let (id, spec) = (try taken.columns["task_id"], try taken.columns["spec"])
      // What the others are, is read outside the gate.
      let others = try taken.filter { try $0[spec] == nil }.map { try $0.id(id) }
      var known: [UniqueID: Claim] = [:]
      if !others.isEmpty {
        let claims = try await pool.query(StoreQueries.claimed, .uuids(others)).decode(claim)
        for claim in claims { known[claim.spec.id] = claim }
      }
      return try taken.compactMap { row in
        guard let spec = try row[spec]?.bytes() else { return known[try row.id(id)] }
        return Claim(spec: try TaskSpecJSON.decode(spec), epoch: 1, attempt: 1, checkpoint: nil)
      }
    }
  }

  package func hasReadyTasks() async throws -> Bool {
    try await call { try await !pool.query(StoreQueries.hasReadyTasks).isEmpty }
  }

  private func claim(_ columns: PostgresColumns) throws -> (PostgresRow) throws -> Claim {
    let (spec, priority) = (try columns["spec"], try columns["priority"])
    let (epoch, attempt) = (try columns["epoch"], try columns["attempt"])
    let checkpoint = try CheckpointColumns(columns, version: "checkpoint_version")
    return { row in
      var its = try TaskSpecJSON.decode(try row.bytes(spec))
      its.priority = try row.int(priority)
      return Claim(
        spec: its, epoch: try row.int(epoch), attempt: try row.int(attempt), checkpoint: try checkpoint.read(row))
    }
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
      ).value { try $0.flags() }
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
      ).value { try $0.flags() }
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
