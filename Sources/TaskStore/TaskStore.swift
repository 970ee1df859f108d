import TaskCore

/// The authoritative state of every task: the queue, the leases and what is safely on disk.
///
/// Every call is set-based, and what it changes it changes in one transaction. Every write for a running task names
/// `(task, epoch)`; if that epoch no longer owns the task, the write changes nothing and the answer says so. Time is the
/// store's own clock. Two implementations pass one conformance suite: ``PostgresStore``, and the memory store of the test kit.
///
/// A service takes the one role that it needs. Every call throws ``StoreError``.
package protocol TaskStore: CommandStore, LeaseStore, RunStore, HousekeepingStore, LimitStore, OutboxStore, TaskReader,
  FleetReader, CleanupStore
{}

/// Takes commands in.
package protocol CommandStore: Sendable {
  /// Applies a batch in order. Idempotent: a repeated command answers ``CommandOutcome/duplicate``.
  func apply(_ commands: [Command]) async throws -> [CommandOutcome]
}

/// Keeps the leases of workers, each with what its worker can do.
package protocol LeaseStore: Sendable {
  /// Makes this the store of the fleet with these topics, unless it is a fleet's already: the events of its tasks are
  /// published there alone. Throws ``StoreError/otherFleet(_:)`` if it is another fleet's, and
  /// ``StoreError/schema(_:)`` or ``StoreError/otherSchema(_:)`` if its schema is not the one of this program.
  func bind(topicPrefix: String) async throws
  func register(_ worker: WorkerRegistration) async throws -> WorkerID
  /// Prolongs the lease by its length, records progress, and returns what the worker shall do about its running tasks.
  /// The same intent is returned until the task is settled or released.
  func renew(_ worker: WorkerID, samples: [ProgressSample]) async throws -> Renewal
  /// Says which storage the worker can use from now on: its next claim follows it.
  func announce(_ worker: WorkerID, volumes: [String: UniqueID]) async throws
  /// Gives up the lease at once. The worker must have settled or released its tasks; a sweep takes those that are left.
  func retire(_ worker: WorkerID) async throws
}

/// Hands tasks out, and records what their runs achieve.
package protocol RunStore: Sendable {
  /// Takes up to `limit` tasks; none if the lease is over. At most one call in flight per worker. `call` numbers
  /// the worker's calls, rising from 1: a call whose answer was lost is repeated under its number, and answered with
  /// those tasks that it took and that still run. A number below the last one takes nothing.
  func claim(_ worker: WorkerID, limit: Int, call: Int64) async throws -> [Claim]
  /// Records what is on stable storage. One answer per write: whether the epoch still owns the task.
  func checkpoint(_ writes: [CheckpointWrite]) async throws -> [Bool]
  /// Ends runs: success, failure or release. One answer per settlement: whether the epoch still owned the task.
  func settle(_ settlements: [Settlement]) async throws -> [Bool]
}

/// Recovers and tidies; every worker calls it now and then.
package protocol HousekeepingStore: Sendable {
  /// Requeues the tasks of workers whose lease is over, and makes due what was delayed. Returns what it moved.
  func sweep() async throws -> SweepResult
  /// Forgets what no task that may still run needs: the places in which tasks waited, the hosts they came from, the
  /// queues they were in.
  func tidy() async throws
}

/// Sets how much of the fleet a part of the tasks may use; ``FleetReader/limits()`` reads it.
package protocol LimitStore: Sendable {
  /// Sets how many tasks of a kind, a queue, a host, a storage or in all may run at once; nil: any number. What runs
  /// already is never stopped.
  func setLimit(_ scope: LimitScope, name: String, to limit: Int?) async throws
  /// Sets a queue's share of claims among queues with tasks of equal priority; 1 unless set.
  func setWeight(queue: String, to weight: Double) async throws
}

/// Keeps events until they are published; one worker at a time leads, and publishes them.
package protocol OutboxStore: Sendable {
  /// Takes or keeps the right to relay for `seconds`; false while another worker has it.
  func lead(_ worker: WorkerID, seconds: Int) async throws -> Bool
  /// The lowest and the highest row of the outbox; nil if it is empty.
  func pendingRows() async throws -> ClosedRange<Int64>?
  /// Up to `limit` outbox rows, oldest first, without those `excluded`, and the tasks of their events. If these are
  /// long, the events are cut to what is little enough to hold in memory.
  func pendingEvents(limit: Int, excluding excluded: [Int64]) async throws -> PendingEvents
  /// Removes relayed rows.
  func discardEvents(_ rows: [Int64]) async throws
  /// Removes the events of `batch` if they are still the first ones of their row.
  func discardFirstEvents(_ batch: OutboxBatch) async throws
}

/// Reads tasks.
package protocol TaskReader: Sendable {
  /// Those of the tasks that exist.
  func tasks(_ ids: [UniqueID]) async throws -> [UniqueID: TaskDocument]
  /// The effective states of those of the tasks that exist.
  func states(of ids: [UniqueID]) async throws -> [UniqueID: TaskState]
  /// Newest first.
  func tasks(_ filter: TaskFilter) async throws -> [TaskDocument]
}

/// Reads what the fleet has and does as a whole.
package protocol FleetReader: Sendable {
  /// What the names of the fleet's topics begin with; nil until a fleet is bound.
  func topicPrefix() async throws -> String?
  func workers() async throws -> [WorkerDocument]
  /// The total, and everything else that has a limit, a weight other than 1, or a task that runs; in the order of
  /// scopes and names.
  func limits() async throws -> [LimitUse]
  func backlog() async throws -> Backlog
  /// Tasks per effective state.
  func counts() async throws -> [TaskState: Int]
  /// Every violation of "each task is in exactly one place, counters equal rows", in words; empty if there is none.
  func audit() async throws -> [String]
}

extension TaskReader {
  package func task(_ id: UniqueID) async throws -> TaskDocument? {
    try await tasks([id])[id]
  }
}

/// What became of a command.
package enum CommandOutcome: Hashable, Sendable {
  case applied
  /// Applied before; nothing changed.
  case duplicate
  /// A running task is to be paused, canceled or moved: its worker learns it by its next renewal, sooner by a signal.
  case intended(worker: UniqueID)
  /// Cannot be applied; `reason` goes with it to the dead letters. `code` is `unknown_task` or `illegal_transition`, …
  case refused(code: String, reason: String)
}

/// How many tasks a sweep moved.
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
