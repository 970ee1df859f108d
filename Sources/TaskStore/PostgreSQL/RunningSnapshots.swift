import ReelhaulMessages
import ReelhaulPostgres
import TaskCore

/// A task as it was after one of its events, and the size of its specification in bytes.
struct TaskSnapshot {
  var task: TaskDocument
  var size: Int
}

/// A row of the outbox with what it tells about its tasks.
struct OutboxRow {
  /// What is known of a task from its event alone.
  enum Detail {
    case submitted(TaskSpec, size: Int)
    /// The first start. Nothing of the task has changed since it was submitted.
    case firstStart(TaskSpec, size: Int, createdAt: Timestamp)
    case succeeded(bytes: Int64?, sha256: [UInt8]?, output: [UInt8]?, generation: Int)
  }

  var batch: OutboxBatch
  /// The boot of the worker that starts the tasks.
  var worker: UniqueID?
  /// One per event.
  var details: [Detail?]

  static func reader(_ columns: PostgresColumns) throws -> (PostgresRow) throws -> OutboxRow {
    let (id, kind, at) = (try columns["id"], try columns["kind"], try columns["at"])
    let (tasks, sequences) = (try columns["task_ids"], try columns["sequences"])
    let (specs, createdAts, worker) = (try columns["specs"], try columns["created_ats"], try columns["worker"])
    let (sizes, digests) = (try columns["sizes"], try columns["digests"])
    let (outputs, generations) = (try columns["outputs"], try columns["generations"])
    return { row in
      let numbers = try row.array(sequences) { cell throws(PostgresError) in Int(try cell.int32()) }
      let batch = OutboxBatch(
        row: try row.int64(id), kind: try row.known(kind), at: try row.time(at),
        events: Array(zip(try row.ids(tasks), numbers)))
      let count = numbers.count
      // A worker of the version before removes the first events of a row, and leaves what it does not know: an array
      // that is longer says nothing.
      func cells(_ column: PostgresColumn) throws -> [PostgresCell?]? {
        guard let cells = try row[column]?.array(), cells.count == count else { return nil }
        return cells
      }
      var details = [Detail?](repeating: nil, count: count)
      switch batch.kind {
      case .submitted:
        for (index, spec) in (try cells(specs) ?? []).enumerated() {
          guard let spec = try spec?.bytes() else { continue }
          details[index] = .submitted(try TaskSpecJSON.decode(spec), size: spec.count)
        }
      case .started:
        guard let specs = try cells(specs), let created = try cells(createdAts) else { break }
        for index in 0..<count {
          guard let spec = try specs[index]?.bytes(), let created = try created[index]?.timestamp() else { continue }
          details[index] = .firstStart(
            try TaskSpecJSON.decode(spec), size: spec.count, createdAt: Timestamp(microseconds: created))
        }
      case .succeeded:
        guard let sizes = try cells(sizes), let digests = try cells(digests), let outputs = try cells(outputs),
          let generations = try cells(generations)
        else { break }
        for index in 0..<count {
          details[index] = .succeeded(
            bytes: try sizes[index]?.int64(), sha256: try digests[index]?.bytes(), output: try outputs[index]?.bytes(),
            generation: try generations[index].map { Int(try $0.int32()) } ?? 0)
        }
      default: break
      }
      return OutboxRow(batch: batch, worker: try row[worker].map { UniqueID(try $0.uuid()) }, details: details)
    }
  }
}

/// The tasks that run, as they were after the last event that this process has relayed. With the details in the outbox
/// they give the documents of most events, which then need not be read.
///
/// A snapshot is used only if the event is the next one of its task. So one that is outdated, because another worker has
/// relayed meanwhile, is never used. About the newest 4,000 are kept.
struct RunningSnapshots {
  private static let limit = 2048

  /// Two ages: when the younger is full, it becomes the older one.
  private var young: [UniqueID: TaskSnapshot] = [:]
  private var old: [UniqueID: TaskSnapshot] = [:]

  /// The tasks of the events after the last event of each in `rows`, and the ids of tasks that must be read.
  mutating func follow(_ rows: [OutboxRow]) -> (known: [UniqueID: TaskSnapshot], missing: [UniqueID]) {
    var known: [UniqueID: TaskSnapshot] = [:]
    var missing: [UniqueID] = []
    var isMissing: Set<UniqueID> = []
    known.reserveCapacity(rows.reduce(0) { $0 + $1.batch.events.count })
    for row in rows {
      for (event, detail) in zip(row.batch.events, row.details) where !isMissing.contains(event.task) {
        let last = known[event.task] ?? take(event.task)
        if let next = row.snapshot(after: last, sequence: event.sequence, detail) {
          known[event.task] = next
        } else {
          known[event.task] = nil
          missing.append(event.task)
          isMissing.insert(event.task)
        }
      }
    }
    keep(known.values)
    return (known, missing)
  }

  /// Keeps those that run.
  mutating func keep(_ snapshots: some Sequence<TaskSnapshot>) {
    for snapshot in snapshots where snapshot.task.state == .running || snapshot.task.state == .publishing {
      if young.count >= Self.limit { (old, young) = (young, [:]) }
      young[snapshot.task.spec.id] = snapshot
    }
  }

  mutating func removeAll() {
    self = RunningSnapshots()
  }

  private mutating func take(_ id: UniqueID) -> TaskSnapshot? {
    young.removeValue(forKey: id) ?? old.removeValue(forKey: id)
  }
}

extension OutboxRow {
  /// The task after its event `sequence`; nil if that cannot be told from `last`, the task after its last known event.
  fileprivate func snapshot(after last: TaskSnapshot?, sequence: Int, _ detail: Detail?) -> TaskSnapshot? {
    if let last, last.task.sequence >= sequence { return last }
    let at = batch.at
    switch detail {
    case .submitted(let spec, let size):
      return TaskSnapshot(task: TaskDocument(spec: spec, state: .queued, sequence: sequence, createdAt: at), size: size)
    case .firstStart(let spec, let size, let createdAt):
      let task = TaskDocument(
        spec: spec, state: .running, attempt: 1, worker: worker, epoch: 1, sequence: sequence, createdAt: createdAt,
        startedAt: at)
      return TaskSnapshot(task: task, size: size)
    case .succeeded(let bytes, let sha256, let output, let generation):
      guard var next = last, next.task.sequence == sequence - 1 else { return nil }
      next.task.state = .succeeded
      next.task.sequence = sequence
      next.task.finishedAt = at
      (next.task.bytesDone, next.task.bytesTotal, next.task.rate) = (bytes ?? 0, bytes, nil)
      (next.task.sha256, next.task.output, next.task.error) = (sha256, output, nil)
      next.task.generation = generation
      return next
    case nil:
      return nil
    }
  }
}
