import ReelhaulMessages
import ReelhaulPostgres
import TaskCore

/// A task as it was after one of its events or later.
struct TaskSnapshot {
  var task: TaskDocument
  /// The size of its specification in bytes.
  var size: Int
  /// The number of the event.
  var event: Int

  /// The bytes of its fields that may be long.
  var bytes: Int { size + (task.output?.count ?? 0) }
}

/// A row of the outbox with what it tells about its tasks.
struct OutboxRow {
  /// What is known of a task from its event alone.
  enum Detail {
    case submitted(TaskSpec, size: Int)
    /// The first start. Nothing of the task has changed since it was submitted.
    case firstStart(TaskSpec, size: Int, createdAt: Timestamp)
    case succeeded(bytes: Int64?, sha256: [UInt8]?, output: [UInt8]?, generation: Int)
    case removed(TaskSpec)

    var spec: TaskSpec? {
      switch self {
      case .submitted(let spec, _), .firstStart(let spec, _, _), .removed(let spec): spec
      case .succeeded: nil
      }
    }
  }

  var batch: OutboxBatch
  /// Whether another row follows, returned or not.
  var hasNext: Bool
  /// The boot of the worker that starts the tasks.
  var worker: UniqueID?
  /// One per event.
  var details: [Detail?]

  static func reader(_ columns: PostgresColumns) throws -> (PostgresRow) throws -> OutboxRow {
    let (id, kind, at) = (try columns["id"], try columns["kind"], try columns["at"])
    let (tasks, sequences) = (try columns["task_ids"], try columns["sequences"])
    let (specs, createdAts, worker) = (try columns["specs"], try columns["created_ats"], try columns["worker"])
    let (sizes, digests) = (try columns["sizes"], try columns["digests"])
    let (outputs, generations, hasNext) = (try columns["outputs"], try columns["generations"], try columns["has_next"])
    let actor = try columns["actor"]
    return { row in
      let numbers = try row.array(sequences) { cell throws(PostgresError) in Int(try cell.int32()) }
      let batch = OutboxBatch(
        row: try row.int64(id), kind: try row.known(kind), at: try row.time(at),
        events: Array(zip(try row.ids(tasks), numbers)), actor: try row[actor]?.text())
      let count = numbers.count
      // A worker of the version before removes the first events of a row, and leaves what it does not know: an array
      // that is longer says nothing.
      func cells(_ column: PostgresColumn) throws -> [PostgresCell?]? {
        guard let cells = try row[column]?.array(), cells.count == count else { return nil }
        return cells
      }
      var details = [Detail?](repeating: nil, count: count)
      switch batch.kind {
      case .submitted, .removed:
        for (index, spec) in (try cells(specs) ?? []).enumerated() {
          // One that cannot be read tells nothing.
          guard let spec = try spec?.bytes(), let task = try? TaskSpecJSON.read(spec) else { continue }
          details[index] = batch.kind == .removed ? .removed(task) : .submitted(task, size: spec.count)
        }
      case .started:
        guard let specs = try cells(specs), let created = try cells(createdAts) else { break }
        for index in 0..<count {
          guard let spec = try specs[index]?.bytes(), let created = try created[index]?.timestamp(),
            let task = try? TaskSpecJSON.read(spec)
          else { continue }
          details[index] = .firstStart(task, size: spec.count, createdAt: Timestamp(microseconds: created))
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
      return OutboxRow(
        batch: batch, hasNext: try row.bool(hasNext), worker: try row[worker].map { UniqueID(try $0.uuid()) },
        details: details)
    }
  }
}

/// Tasks with events to come, as they were after the last event that this process has relayed: those that run, and those
/// that were read when more had happened to them. With the details in the outbox they give the documents of most events,
/// which then need not be read; and the documents of a task do not go back in time.
///
/// A snapshot is continued only by the very next event of its task. So one that is outdated, because another worker has
/// relayed meanwhile, is never used. About the newest 4,000 are kept.
struct RunningSnapshots {
  private static let limit = 2048
  /// Longer ones are read again, so that all of them together need few megabytes.
  private static let longest = 4096

  /// The last row of those that may have been published already, by this process or another; nil if it is not known yet.
  /// What such a row tells of a task may be older than what was published, and so the task is read.
  var doubtedTo: Int64?
  /// The numbers of the last events of tasks that were published as they were after these, with earlier events.
  private var ahead: [UniqueID: Int] = [:]
  /// Two ages: when the younger is full, it becomes the older one.
  private var young: [UniqueID: TaskSnapshot] = [:]
  private var old: [UniqueID: TaskSnapshot] = [:]

  /// The tasks of the events in `rows`, each after its last event, and the tasks that must be read, in the order of their
  /// first events, with the numbers of their last ones.
  mutating func follow(_ rows: [OutboxRow]) -> (known: [UniqueID: TaskSnapshot], missing: [(id: UniqueID, event: Int)])
  {
    var known: [UniqueID: TaskSnapshot] = [:]
    var missing: [(id: UniqueID, event: Int)] = []
    var places: [UniqueID: Int] = [:]
    var isInOrder = true
    known.reserveCapacity(rows.reduce(0) { $0 + $1.batch.events.count })
    for row in rows {
      for ((id, event), detail) in zip(row.batch.events, row.details) {
        var isBehind = false
        if let last = ahead[id] {
          isBehind = event < last
          if !isBehind { ahead[id] = nil }
        }
        if let place = places[id] {
          missing[place].event = event
        } else if let next = row.snapshot(
          after: known[id] ?? take(id), event, detail, isDoubted: isBehind || row.batch.row <= doubtedTo ?? .max)
        {
          known[id] = next
        } else {
          // One that could be followed so far.
          if known.removeValue(forKey: id) != nil { isInOrder = false }
          places[id] = missing.count
          missing.append((id, event))
        }
      }
    }
    if !isInOrder {
      var first: [UniqueID: Int] = [:]
      for (place, event) in rows.lazy.flatMap(\.batch.events).enumerated() where first[event.task] == nil {
        first[event.task] = place
      }
      missing.sort { first[$0.id, default: 0] < first[$1.id, default: 0] }
    }
    keep(known.values)
    return (known, missing)
  }

  /// Keeps those with events to come.
  mutating func keep(_ snapshots: some Sequence<TaskSnapshot>) {
    for snapshot in snapshots {
      let task = snapshot.task
      guard task.state == .running || task.state == .publishing || task.sequence > snapshot.event,
        snapshot.bytes <= Self.longest
      else { continue }
      if young.count >= Self.limit { (old, young) = (young, [:]) }
      young[task.spec.id] = snapshot
    }
  }

  /// Notes which of the tasks that were read are ahead of the events that are published with them.
  mutating func note(_ tasks: [UniqueID: TaskDocument], read ids: [UniqueID], with batches: [OutboxBatch]) {
    var last = Dictionary(uniqueKeysWithValues: ids.map { ($0, 0) })
    for (id, event) in batches.lazy.flatMap(\.events) where last[id] != nil { last[id] = event }
    for (id, event) in last where event > 0 {
      if let sequence = tasks[id]?.sequence, sequence > event { ahead[id] = sequence }
    }
    guard ahead.count > 4 * Self.limit else { return }
    (ahead, doubtedTo) = ([:], nil)
  }

  private mutating func take(_ id: UniqueID) -> TaskSnapshot? {
    young.removeValue(forKey: id) ?? old.removeValue(forKey: id)
  }
}

extension OutboxRow {
  /// The task after its event number `event`; nil if that cannot be told from `last`, the task after an earlier one.
  fileprivate func snapshot(
    after last: TaskSnapshot?, _ event: Int, _ detail: Detail?, isDoubted: Bool
  ) -> TaskSnapshot? {
    if var last, last.task.sequence >= event {
      last.event = event
      return last
    }
    if last == nil, isDoubted { return nil }
    let at = batch.at
    switch detail {
    case .submitted(let spec, let size):
      let task = TaskDocument(spec: spec, state: .queued, sequence: event, createdAt: at)
      return TaskSnapshot(task: task, size: size, event: event)
    case .firstStart(let spec, let size, let createdAt):
      let task = TaskDocument(
        spec: spec, state: .running, attempt: 1, worker: worker, epoch: 1, sequence: event, createdAt: createdAt,
        startedAt: at)
      return TaskSnapshot(task: task, size: size, event: event)
    case .succeeded(let bytes, let sha256, let output, let generation):
      guard var next = last, next.task.sequence == event - 1 else { return nil }
      next.task.state = .succeeded
      (next.task.sequence, next.event) = (event, event)
      next.task.finishedAt = at
      (next.task.bytesDone, next.task.bytesTotal, next.task.rate) = (bytes ?? 0, bytes, nil)
      (next.task.sha256, next.task.output, next.task.error) = (sha256, output, nil)
      next.task.generation = generation
      return next
    case .removed, nil:
      return nil
    }
  }
}
