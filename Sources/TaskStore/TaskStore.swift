import TaskCore

/// The authoritative state of every task: the queue, the leases and what is safely on disk.
///
/// Every call is set-based, and what it changes it changes in one transaction. Every write for a running task names `(task, epoch)`; where that
/// epoch does not own the task any more the write changes nothing and the answer says so. Two implementations
/// pass one conformance suite: ``MemoryStore`` and ``PostgresStore``. Time is the store's own clock.
///
/// Throws ``StoreError``.
package protocol TaskStore: CleanupStore {
  // Ingest

  /// Applies a batch in order. Idempotent: a repeated command answers ``CommandOutcome/duplicate``.
  func apply(_ commands: [Command]) async throws -> [CommandOutcome]

  // The fleet

  /// What the names of the fleet's topics begin with; nil until it is bound.
  func topicPrefix() async throws -> String?
  /// Makes this the store of the fleet with these topics, where it is none's yet: the events of its tasks are published
  /// there alone. Throws ``StoreError/otherFleet(_:)`` where it is another's, and where its schema is not this program's
  /// ``StoreError/schema(_:)`` or ``StoreError/otherSchema(_:)``.
  func bind(topicPrefix: String) async throws

  // The worker's lease

  func register(_ worker: WorkerRegistration) async throws -> WorkerID
  /// Prolongs the lease by its length, records progress, and returns what the worker shall do about its running tasks.
  /// The same intent is returned until the task is settled or released.
  func renew(_ worker: WorkerID, samples: [ProgressSample]) async throws -> Renewal
  /// What storage the worker can use from now on: its next claim follows it.
  func announce(_ worker: WorkerID, volumes: [String: UniqueID]) async throws
  /// Gives up the lease at once; the worker must have released or settled everything, the rest is swept.
  func retire(_ worker: WorkerID) async throws

  // Running tasks

  /// Takes up to `limit` tasks; none where the lease is over. At most one call in flight per worker. `call` numbers
  /// the worker's calls, rising from 1: one whose answer was lost is repeated under its number, and answered with what
  /// it took and still runs. A number below the last one takes nothing.
  func claim(_ worker: WorkerID, limit: Int, call: Int64) async throws -> [Claim]
  /// Records what is on stable storage. One answer per write: whether the epoch still owns the task.
  func checkpoint(_ writes: [CheckpointWrite]) async throws -> [Bool]
  /// Ends runs: success, failure or release. One answer per settlement: whether the epoch still owned the task.
  func settle(_ settlements: [Settlement]) async throws -> [Bool]

  // Housekeeping, called by every worker now and then

  /// Requeues the tasks of workers whose lease is over, and makes due what was delayed. Returns what it moved.
  func sweep() async throws -> SweepResult
  /// Forgets what tasks that may still run no longer need: the places in which they waited, the hosts they
  /// came from, the queues they were in.
  func tidy() async throws

  // Limits

  /// How many tasks of a kind, a queue, a host, a storage or in all may run at once; nil: any number. What runs
  /// already is never stopped.
  func setLimit(_ scope: LimitScope, name: String, to limit: Int?) async throws
  /// A queue's share of claims among queues with tasks of equal priority; 1 unless set.
  func setWeight(queue: String, to weight: Double) async throws
  /// The total, and all else that has a limit, a weight other than 1, or a task that runs; in the order of scopes and
  /// names.
  func limits() async throws -> [LimitUse]

  // Relay

  /// Takes or keeps the right to relay for `seconds`; false while another worker has it.
  func lead(_ worker: WorkerID, seconds: Int) async throws -> Bool
  /// The lowest and the highest row of the outbox; nil where it is empty.
  func pendingRows() async throws -> ClosedRange<Int64>?
  /// Up to `limit` outbox rows, oldest first, none of `excluded`, and the tasks of their events. Where these are long,
  /// the events are cut to what is little enough to hold in memory.
  func pendingEvents(limit: Int, excluding excluded: [Int64]) async throws -> PendingEvents
  /// Removes relayed rows.
  func discardEvents(_ rows: [Int64]) async throws
  /// Removes the events of `batch`, which are the first of their row, where they still are that.
  func discardFirstEvents(_ batch: OutboxBatch) async throws

  // Reading

  /// Those of the tasks that exist.
  func tasks(_ ids: [UniqueID]) async throws -> [UniqueID: TaskDocument]
  /// The effective states of those of the tasks that exist.
  func states(of ids: [UniqueID]) async throws -> [UniqueID: TaskState]
  /// Newest first.
  func tasks(_ filter: TaskFilter) async throws -> [TaskDocument]
  func workers() async throws -> [WorkerDocument]
  func backlog() async throws -> Backlog
  /// Tasks per effective state.
  func counts() async throws -> [TaskState: Int]
  /// Every violation of "each task is in exactly one place, counters equal rows", in words; empty when all is well.
  func audit() async throws -> [String]
}

extension TaskStore {
  package func task(_ id: UniqueID) async throws -> TaskDocument? {
    try await tasks([id])[id]
  }
}
