package import TaskCore

/// The authoritative state of every task: the queue, the leases and what is safely on disk.
///
/// Every call is one transaction and set-based. Every write for a running task names `(task, epoch)`; where that
/// epoch does not own the task any more the write changes nothing and the answer says so. Two implementations
/// pass one conformance suite: ``MemoryStore`` and ``PostgresStore``. Time is the store's own clock.
///
/// Throws ``StoreError``.
package protocol TaskStore: Sendable {
  // Ingest

  /// Applies a batch in order. Idempotent: a repeated command answers ``CommandOutcome/duplicate``.
  func apply(_ commands: [Command]) async throws -> [CommandOutcome]

  // The worker's lease

  func register(_ worker: WorkerRegistration) async throws -> WorkerID
  /// Prolongs the lease by its length, records progress, and returns what the worker shall do about its running tasks.
  /// The same intent is returned until the task is settled or released.
  func renew(_ worker: WorkerID, samples: [ProgressSample]) async throws -> Renewal
  /// Gives up the lease at once; the worker must have released or settled everything, the rest is swept.
  func retire(_ worker: WorkerID) async throws

  // Running tasks

  /// Takes up to `limit` tasks. At most one call in flight per worker. Empty where the lease is over.
  func claim(_ worker: WorkerID, limit: Int) async throws -> [Claim]
  /// Records what is on stable storage. One answer per write: whether the epoch still owns the task.
  func checkpoint(_ writes: [CheckpointWrite]) async throws -> [Bool]
  /// Ends runs: success, failure or release. One answer per settlement: whether the epoch still owned the task.
  func settle(_ settlements: [Settlement]) async throws -> [Bool]

  // Housekeeping, called by every worker now and then

  /// Requeues the tasks of workers whose lease is over, and makes due what was delayed. Returns what it moved.
  func sweep() async throws -> SweepResult

  // Relay

  /// Takes or keeps the right to relay for `seconds`; false while another worker has it.
  func lead(_ worker: WorkerID, seconds: Int) async throws -> Bool
  /// Up to `limit` outbox rows, oldest first, with what their events need.
  func pendingEvents(limit: Int) async throws -> [OutboxBatch]
  /// Removes relayed rows.
  func discardEvents(_ rows: [Int64]) async throws

  // Reading

  func task(_ id: UUID) async throws -> TaskDocument?
  /// Newest first.
  func tasks(_ filter: TaskFilter) async throws -> [TaskDocument]
  func workers() async throws -> [WorkerDocument]
  /// Tasks per effective state.
  func counts() async throws -> [TaskState: Int]
  /// Every violation of "each task is in exactly one place, counters equal rows", in words; empty when all is well.
  func audit() async throws -> [String]
}

package struct WorkerID: Hashable, Sendable {
  package let rawValue: Int32

  package init(rawValue: Int32) {
    self.rawValue = rawValue
  }
}

package struct WorkerRegistration: Sendable {
  /// A new UUID for every start of a process.
  package var boot: UUID
  package var host: String
  package var pid: Int32
  package var leaseSeconds: Int
  /// The kinds of task it has handlers for.
  package var kinds: [TaskKind]
  /// The UUIDs of the storage volumes it has mounted, by name.
  package var volumes: [String: UUID]
  package var labels: [String: String]

  package init(
    boot: UUID, host: String, pid: Int32, leaseSeconds: Int, kinds: [TaskKind], volumes: [String: UUID],
    labels: [String: String] = [:]
  ) {
    self.boot = boot
    self.host = host
    self.pid = pid
    self.leaseSeconds = leaseSeconds
    self.kinds = kinds
    self.volumes = volumes
    self.labels = labels
  }
}

package enum CommandOutcome: Hashable, Sendable {
  case applied
  /// Applied before; nothing changed.
  case duplicate
  /// A running task is to be paused, canceled or moved: its worker learns it by its next renewal, sooner by a signal.
  case intended(worker: UUID)
  /// Cannot be applied; `reason` goes with it to the dead letters. `code` is `unknown_task` or `illegal_transition`, …
  case refused(code: String, reason: String)
}

package struct Renewal: Hashable, Sendable {
  /// False: the lease is gone for good. Stop everything and register anew.
  package var isAlive: Bool
  package var intents: [Intent]

  package init(isAlive: Bool, intents: [Intent]) {
    self.isAlive = isAlive
    self.intents = intents
  }
}

/// What the worker shall do about a running task: stop it and settle it as ``Settlement/Outcome/released``; the store
/// then knows whether that means paused or canceled.
package struct Intent: Hashable, Sendable {
  package enum What: String, Sendable { case pause, cancel, requeue }
  package var taskID: UUID
  package var what: What

  package init(taskID: UUID, what: What) {
    self.taskID = taskID
    self.what = what
  }
}

package struct Claim: Hashable, Sendable {
  package var spec: TaskSpec
  package var epoch: Int
  /// This attempt's number, from 1.
  package var attempt: Int
  package var checkpoint: Checkpoint?

  package init(spec: TaskSpec, epoch: Int, attempt: Int, checkpoint: Checkpoint?) {
    self.spec = spec
    self.epoch = epoch
    self.attempt = attempt
    self.checkpoint = checkpoint
  }
}

package struct CheckpointWrite: Hashable, Sendable {
  package var taskID: UUID
  package var epoch: Int
  package var checkpoint: Checkpoint

  package init(taskID: UUID, epoch: Int, checkpoint: Checkpoint) {
    self.taskID = taskID
    self.epoch = epoch
    self.checkpoint = checkpoint
  }
}

package struct Settlement: Hashable, Sendable {
  package enum Outcome: Hashable, Sendable {
    case succeeded(sha256: [UInt8]?, bytes: Int64)
    /// A counted attempt failed; `retryIn` is nil where the task is to fail for good.
    case failed(TaskFailure, retryIn: Duration?)
    /// Back to the queue after `delay` without counting the attempt, or to where an intent wants it (paused,
    /// canceled). `reason` is why it waits, or nil for a plain hand-back.
    case released(reason: TaskFailure?, delay: Duration)
  }
  package var taskID: UUID
  package var epoch: Int
  package var outcome: Outcome

  package init(taskID: UUID, epoch: Int, outcome: Outcome) {
    self.taskID = taskID
    self.epoch = epoch
    self.outcome = outcome
  }
}

package struct SweepResult: Hashable, Sendable {
  /// Tasks taken from workers whose lease is over.
  package var expired: Int
  /// Delayed tasks that became due.
  package var due: Int

  package init(expired: Int, due: Int) {
    self.expired = expired
    self.due = due
  }
}

/// One row of the outbox: the events of one statement.
package struct OutboxBatch: Sendable {
  package var row: Int64
  package var events: [TaskEvent]

  package init(row: Int64, events: [TaskEvent]) {
    self.row = row
    self.events = events
  }
}

package struct TaskFilter: Hashable, Sendable {
  package var state: TaskState?
  package var queue: String?
  /// 1…10,000.
  package var limit: Int

  package init(state: TaskState? = nil, queue: String? = nil, limit: Int = 100) {
    self.state = state
    self.queue = queue
    self.limit = limit
  }
}

package enum StoreError: Error, Hashable, Sendable {
  /// The database cannot be reached now; the call may be repeated.
  case unavailable(String)
  /// The database refused the statement: a bug or a wrong schema. `sqlState` has five characters.
  case failed(sqlState: String, message: String)
  /// The schema is not the one this program needs.
  case schema(String)
}
