import ReelhaulCodec
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
      var known: [UniqueID: ClaimedTask] = [:]
      if !others.isEmpty {
        let tasks = try await pool.query(
          StoreQueries.claimed, .uuids(others), .int32(worker.rawValue)
        ).decode(claimedTask)
        for task in tasks { known[task.id] = task }
      }
      var (claims, unreadable): ([Claim], [Settlement]) = ([], [])
      for row in taken {
        let id = try row.id(id)
        guard let task = try row[spec].map({ ClaimedTask(id: id, spec: try $0.bytes()) }) ?? known[id] else { continue }
        do throws(DecodingFailure) {
          claims.append(try task.claim())
        } catch {
          unreadable.append(task.released(error))
        }
      }
      // A worker of the version that has stored them can run them.
      if !unreadable.isEmpty { _ = try await settle(unreadable) }
      return claims
    }
  }

  package func demand(on worker: WorkerID) async throws -> Demand? {
    try await call {
      let found = try await pool.query(
        StoreQueries.demand, .int32(worker.rawValue), .int32(Int32(clamping: Demand.most)))
      return try found.decode { columns in
        let (ready, running, workers) = (try columns["ready"], try columns["running"], try columns["workers"])
        return { row in
          Demand(ready: try row.int(ready), running: try row.int(running), workers: try row.int(workers))
        }
      }.first
    }
  }

  private func claimedTask(_ columns: PostgresColumns) throws -> (PostgresRow) throws -> ClaimedTask {
    let (id, spec, priority) = (try columns["task_id"], try columns["spec"], try columns["priority"])
    let (epoch, attempt) = (try columns["epoch"], try columns["attempt"])
    let checkpoint = try CheckpointColumns(columns, version: "checkpoint_version")
    let beginsAnew = try columns["begins_anew"]
    return { row in
      ClaimedTask(
        id: try row.id(id), spec: try row.bytes(spec), priority: try row.int(priority), epoch: try row.int(epoch),
        attempt: try row.int(attempt), checkpoint: try checkpoint.read(row), beginsAnew: try row.bool(beginsAnew))
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
        .textArray(ends.map(\.failure?.code.rawValue)), .textArray(ends.map { $0.failure?.message.storable }),
        .textArray(ends.map(\.failure?.class.rawValue)),
        .int32Array(ends.map { $0.failure?.retryAfter.map { Int32(clamping: $0) } })
      ).value { try $0.flags() }
    }
  }
}

/// A task that was claimed, before its specification is read.
private struct ClaimedTask {
  var id: UniqueID
  var spec: [UInt8]
  /// As it is now; nil if it is that of the specification.
  var priority: Int?
  var epoch = 1
  var attempt = 1
  var checkpoint: Checkpoint?
  var beginsAnew = false

  func claim() throws(DecodingFailure) -> Claim {
    var its = try TaskSpecJSON.decode(spec)
    if let priority { its.priority = priority }
    return Claim(spec: its, epoch: epoch, attempt: attempt, checkpoint: checkpoint, beginsAnew: beginsAnew)
  }

  func released(_ error: DecodingFailure) -> Settlement {
    let reason = TaskFailure(
      code: .specUnreadable, message: "this worker's version cannot read the task: \(error)", class: .wait)
    return Settlement(taskID: id, epoch: epoch, outcome: .released(reason: reason, delay: .seconds(60)))
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
