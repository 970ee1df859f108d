import TaskCore

/// Everything ``MemoryStore`` knows. Its methods are the transactions; `now` is the time of the transaction.
struct MemoryState {
  struct Worker {
    var registration: WorkerRegistration
    var startedAt: Timestamp
    var leaseUntil: Timestamp
    /// The number of its last claim call.
    var claimCall: Int64 = 0
    var isDead = false
  }

  /// What limits how much may run.
  struct Bucket: Hashable {
    var scope: LimitScope
    var name: String
  }

  /// Start-time fair queueing.
  struct Queue {
    var weight = 1.0
    /// The virtual time at which the queue is served next.
    var tag = 0.0
  }

  struct OutboxRow {
    var id: Int64
    var kind: TaskEvent.Kind
    var at: Timestamp
    var events: [(task: UUID, sequence: Int)]
  }

  var now: Timestamp
  var tasks: [UUID: MemoryTask] = [:]
  /// Removed ids: a submit that is delivered again does not bring them back.
  var removed: Set<UUID> = []
  /// The answers to control commands.
  var inbox: [UUID: CommandOutcome] = [:]
  var workers: [WorkerID: Worker] = [:]
  var limits: [Bucket: Int] = [:]
  var queues: [String: Queue] = [:]
  /// The highest virtual time at which a queue was served.
  var virtualTime = 0.0
  var outbox: [OutboxRow] = []
  var leader: (worker: WorkerID, until: Timestamp)?
  var lastWorker: Int32 = 0
  var lastRow: Int64 = 0
  var lastPosition = 0
  var firstPosition = 0

  /// Gives each task its next event number and tells of it.
  mutating func publish(_ kind: TaskEvent.Kind, _ ids: [UUID]) {
    guard !ids.isEmpty else { return }
    lastRow += 1
    var row = OutboxRow(id: lastRow, kind: kind, at: now, events: [])
    for id in ids {
      tasks[id]?.sequence += 1
      row.events.append((id, tasks[id]?.sequence ?? 0))
    }
    outbox.append(row)
  }

  /// Lets a resting task wait: for what it comes after, for its time, or for a worker.
  mutating func release(_ id: UUID, event: TaskEvent.Kind) {
    guard var task = tasks[id] else { return }
    task.finishedAt = nil
    task.state = task.waitsFor.isEmpty ? .queued : .blocked
    tasks[id] = task
    if task.state == .queued { enqueue(id, notBefore: task.spec.notBefore) }
    publish(event, [id])
  }

  mutating func enqueue(_ id: UUID, inFront: Bool = false, notBefore: Timestamp? = nil) {
    if let notBefore, notBefore > now {
      tasks[id]?.place = .delayed(until: notBefore)
    } else if inFront {
      firstPosition -= 1
      tasks[id]?.place = .ready(position: firstPosition)
    } else {
      lastPosition += 1
      tasks[id]?.place = .ready(position: lastPosition)
    }
  }

  func buckets(of spec: TaskSpec) -> [Bucket] {
    let lane = LaneKey(spec)
    return [
      Bucket(scope: .total, name: ""), Bucket(scope: .kind, name: lane.kind.rawValue),
      Bucket(scope: .queue, name: lane.queue), Bucket(scope: .host, name: lane.host),
      Bucket(scope: .storage, name: lane.storage),
    ]
  }

  func boot(of task: MemoryTask) -> UUID? {
    task.run.flatMap { workers[$0.worker]?.registration.boot }
  }
}
