import TaskCore

/// The authoritative state of every task: the queue, the leases and the checkpoints.
///
/// Every call is set-based, and what it changes it changes in one transaction. Every write for a running task names
/// `(task, epoch)`; if that epoch no longer owns the task, the write changes nothing and the answer says so. Time is the
/// store's own clock. Two implementations pass one conformance suite: ``PostgresStore``, and the memory store of the test kit.
///
/// A service depends only on the role that it needs. Every call throws ``StoreError``.
package protocol TaskStore: CommandStore, LeaseStore, RunStore, HousekeepingStore, LimitStore, OutboxStore, TaskReader,
  FleetReader, CleanupStore, GaugeStore, HookStore
{}

/// Applies commands.
package protocol CommandStore: Sendable {
  /// Applies a batch in order. Idempotent: a repeated command answers ``CommandOutcome/duplicate``.
  func apply(_ commands: [Command]) async throws -> [CommandOutcome]
}

/// Keeps the leases of workers, each with its worker's kinds and storages.
package protocol LeaseStore: Sendable {
  /// Binds this store to the fleet with this topic prefix, unless it already belongs to a fleet: the events of its
  /// tasks must be published only to that fleet's topics. Throws ``StoreError/otherFleet(_:)`` if it belongs to another
  /// fleet, and ``StoreError/schema(_:)`` or ``StoreError/otherSchema(_:)`` if its schema does not fit this program.
  func bind(topicPrefix: String) async throws
  func register(_ worker: WorkerRegistration) async throws -> WorkerID
  /// Prolongs the lease by its length, records progress, and returns the intents for the worker's running tasks. It
  /// returns an intent again until the task is settled or released.
  func renew(_ worker: WorkerID, samples: [ProgressSample]) async throws -> Renewal
  /// Sets the storages that the worker can use from now on. Its next claim follows this.
  func announce(_ worker: WorkerID, volumes: [String: UniqueID]) async throws
  /// Records the space of the worker's storages, for people to see.
  func measure(_ worker: WorkerID, spaces: [String: StorageSpace]) async throws
  /// Tells what the worker knows of these hosts; nothing of others. The limits that follow hold from the next sweep on: a
  /// worker that tells them must not wait for claims, because it has a lease to renew.
  func tell(_ worker: WorkerID, hostLimits: [String: HostLimit]) async throws
  /// These servers have served a task so long ago, whatever ``RunStore/note(_:)`` has told of them.
  func endOutages(of servers: [TaskServer: Duration]) async throws
  /// The hosts whose limit follows from what workers told.
  func limitedHosts() async throws -> Set<String>
  /// Notes that the worker is ending: it takes no share of commands and tasks any more.
  func leave(_ worker: WorkerID) async throws
  /// The workers that have begun or renewed their lease within the last `time` and are not ending, in the order of their
  /// registration.
  func renewed(within time: Duration) async throws -> [WorkerID]
  /// The time of the store's clock.
  func time() async throws -> Timestamp
  /// Gives up the lease at once. The worker must have settled or released its tasks; a sweep requeues the others.
  func retire(_ worker: WorkerID) async throws
}

/// Gives tasks to workers, and records the results of their runs.
package protocol RunStore: Sendable {
  /// Claims up to `limit` tasks; none if the lease is over. A worker has at most one call in flight. `call` is the
  /// number of the worker's call, rising from 1. If the answer to a call was lost, repeat it with the same number: it
  /// returns the tasks that it claimed and that still run. A call with a number below the last one claims nothing.
  func claim(_ worker: WorkerID, limit: Int, call: Int64) async throws -> [Claim]
  /// What a claim of this worker may find; nil if it would find nothing. Asking is cheaper than a claim that finds
  /// nothing, and delays no other claim.
  func demand(on worker: WorkerID) async throws -> Demand?
  /// Records checkpoints. Returns one answer per write: whether the epoch still owns the task.
  func checkpoint(_ writes: [CheckpointWrite]) async throws -> [Bool]
  /// Notes failures that servers may be the cause of. Returns for each whether its server is out, as this worker or another
  /// has found: then the failure is not the task's. The limits that follow hold from the next sweep on.
  func note(_ failures: [ServerFailure]) async throws -> [Bool]
  /// Ends runs with success, failure or release. Returns one answer per settlement: whether the epoch still owned the
  /// task.
  func settle(_ settlements: [Settlement]) async throws -> [Bool]
}

/// Recovers and tidies. Every worker calls it from time to time.
package protocol HousekeepingStore: Sendable {
  /// Requeues the tasks of workers whose lease is over, and the delayed tasks whose time has come. Returns how many.
  func sweep() async throws -> SweepResult
  /// Puts in force what ``LeaseStore/tell(_:hostLimits:)`` and ``RunStore/note(_:)`` have told of hosts.
  func putLearnedLimitsInForce() async throws
  /// Ends the sessions of workers that have stopped in the middle of sending a batch of commands, which nobody else's can
  /// pass. Returns how many.
  func endStalledBatches(silentFor silence: Duration) async throws -> Int
  /// Puts right, after a database was restored, where claims look for tasks, and lets claims forget where there are none.
  func restLanes() async throws
  /// The same, and deletes the lanes, hosts and queues that no task needs which may still run.
  func tidy() async throws
  /// Goes on with a change of a queue's web hook that whoever made it did not end.
  func goOnMovingHooks() async throws
}

/// Sets how much of the fleet a part of the tasks may use; ``FleetReader/limits()`` reads it.
package protocol LimitStore: Sendable {
  /// Sets how many tasks of a kind, a queue, a host, a storage or the fleet may run at once; nil for any number.
  /// Running tasks are never stopped.
  func setLimit(_ scope: LimitScope, name: String, to limit: Int?) async throws
  /// Sets a queue's share of claims among queues with tasks of equal priority; 1 unless set.
  func setWeight(queue: String, to weight: Double) async throws
}

/// Keeps events until they are published. One worker at a time is the leader and publishes them.
package protocol OutboxStore: Sendable {
  /// Takes or keeps the right to relay for `seconds`. Returns false while another worker has it.
  func lead(_ worker: WorkerID, seconds: Int) async throws -> Bool
  /// The lowest and the highest row of the outbox; nil if it is empty.
  func pendingRows() async throws -> ClosedRange<Int64>?
  /// Up to `limit` rows of the outbox, oldest first, except the `excluded` ones, with the tasks of their events: fewer
  /// events if their specifications and outputs have more than `bytes` bytes, but at least one.
  func pendingEvents(limit: Int, bytes: Int, excluding excluded: [Int64]) async throws -> PendingEvents
  /// What waits may be published already: from now on its documents are those of the present, so that no older one follows.
  func doubtEvents()
  /// Removes relayed rows.
  func discardEvents(_ rows: [Int64]) async throws
  /// Removes the events of `batch` if they are still the first ones of their row.
  func discardFirstEvents(_ batch: OutboxBatch) async throws
}

/// Reads tasks.
package protocol TaskReader: Sendable {
  /// The tasks with these ids that exist.
  func tasks(_ ids: [UniqueID]) async throws -> [UniqueID: TaskDocument]
  /// The last checkpoints of those of these tasks that have one. A task has none after its success.
  func checkpoints(of tasks: [UniqueID]) async throws -> [UniqueID: Checkpoint]
  /// The effective states of the tasks with these ids that exist.
  func states(of ids: [UniqueID]) async throws -> [UniqueID: TaskState]
  /// Which of these ids are those of removed tasks, for as long as the store remembers them, and whether each had
  /// succeeded. A submit with such an id changes nothing.
  func removed(among ids: [UniqueID]) async throws -> [UniqueID: Bool]
  /// Which of these ids may be derived from that of a task that is not over, as those of a handler's transfers are.
  func unfinished(derived ids: [UniqueID]) async throws -> Set<UniqueID>
  /// Up to `limit` ids of tasks that end like this, in falling order. Looks at every task's id.
  func ids(ending: IDEnding, limit: Int) async throws -> [UniqueID]
  /// A page of the tasks that fit, in their order. It looks at a bounded number of tasks, so it may have fewer than asked
  /// for although there are more: see ``TaskPage/searchedTo``.
  func page(_ filter: TaskFilter) async throws -> TaskPage<TaskDocument>
}

extension TaskReader {
  /// Like ``states(of:)``; a removed task that had succeeded keeps nothing waiting, and is `succeeded`.
  package func states(ofPredecessors ids: [UniqueID]) async throws -> [UniqueID: TaskState] {
    var states = try await states(of: ids)
    for (id, hadSucceeded) in try await removed(among: ids.filter { states[$0] == nil }) where hadSucceeded {
      states[id] = .succeeded
    }
    return states
  }
}

/// Reads the state of the whole fleet.
package protocol FleetReader: Sendable {
  /// The prefix of the names of the fleet's topics; nil until a fleet is bound.
  func topicPrefix() async throws -> String?
  func workers() async throws -> [WorkerDocument]
  /// The total, and all other parts that have a limit, a weight other than 1, or a running task; sorted by scope and
  /// name.
  func limits() async throws -> [LimitUse]
  func backlog() async throws -> Backlog
  /// What waits for web hooks, by host.
  func waitingHooks() async throws -> [HookBacklog]
  /// Tasks per effective state.
  func counts() async throws -> [TaskState: Int]
  /// Describes every violation of "each task is in exactly one place, and counters equal rows"; empty if there is none.
  func audit() async throws -> [String]
}

extension TaskReader {
  package func task(_ id: UniqueID) async throws -> TaskDocument? {
    try await tasks([id])[id]
  }

  package func checkpoint(of id: UniqueID) async throws -> Checkpoint? {
    try await checkpoints(of: [id])[id]
  }
}

/// The result of a command.
package enum CommandOutcome: Hashable, Sendable {
  case applied
  /// The command was applied before; nothing changed.
  case duplicate
  /// The task is running and is to be paused or canceled. Its worker learns this from a signal or from its next
  /// renewal.
  case intended(worker: UniqueID)
  /// The command cannot be applied. It goes to the dead letters together with `reason`. `code` is for example
  /// `unknown_task` or `illegal_transition`.
  case refused(code: String, reason: String)
}

/// How many tasks a sweep moved, and how many workers may do the next.
package struct SweepResult: Hashable, Sendable {
  /// Tasks taken from workers whose lease is over.
  package var expired: Int
  /// Delayed tasks that became due.
  package var due: Int
  /// Workers whose lease is not over.
  package var workers: Int

  package init(expired: Int, due: Int, workers: Int) {
    self.expired = expired
    self.due = due
    self.workers = workers
  }
}
