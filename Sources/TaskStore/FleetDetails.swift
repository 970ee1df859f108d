import TaskCore

/// Failed tasks with the same error and the same host.
package struct FailureGroup: Hashable, Sendable {
  package var code: TaskFailure.Code
  /// Empty if the tasks have no remote host.
  package var host: String
  package var tasks: Int
  /// Whether there may be more: only the newest tasks were looked at.
  package var isAtLeast: Bool
  package var newestAt: Timestamp
  /// The one that failed last.
  package var taskID: UniqueID

  package init(
    code: TaskFailure.Code, host: String, tasks: Int, isAtLeast: Bool, newestAt: Timestamp, taskID: UniqueID
  ) {
    self.code = code
    self.host = host
    self.tasks = tasks
    self.isAtLeast = isAtLeast
    self.newestAt = newestAt
    self.taskID = taskID
  }
}

/// How much of a remote host the fleet uses.
package struct HostUse: Hashable, Sendable {
  package var host: String
  /// Tasks that could run now, or wait for a free place or a worker.
  package var waiting: Int
  package var running: Int
  package var limit: Int?
  package var bytesPerSecond: Int64

  package init(host: String, waiting: Int, running: Int, limit: Int?, bytesPerSecond: Int64) {
    self.host = host
    self.waiting = waiting
    self.running = running
    self.limit = limit
    self.bytesPerSecond = bytesPerSecond
  }
}

/// The space of a storage, in bytes.
package struct StorageSpace: Hashable, Sendable {
  package var free: Int64
  /// What of it files under way will need.
  package var promised: Int64
  /// Nil if the file system does not tell.
  package var total: Int64?

  package init(free: Int64, promised: Int64, total: Int64?) {
    self.free = free
    self.promised = promised
    self.total = total
  }
}

/// A storage that live workers have.
package struct StorageUse: Hashable, Sendable {
  package var storage: String
  package var workers: Int
  /// As one of the workers told it last, about a minute ago at most; nil if none has.
  package var space: StorageSpace?

  package init(storage: String, workers: Int, space: StorageSpace?) {
    self.storage = storage
    self.workers = workers
    self.space = space
  }
}

/// Tasks that are held by the same thing.
package struct HeldTasks: Hashable, Sendable {
  package enum Reason: Hashable, Sendable {
    /// A limit is used up.
    case limit(LimitScope, name: String, limit: Int)
    case paused
    /// They were submitted for a later time.
    case scheduled
    /// They failed with this error, and are tried again later.
    case retrying(TaskFailure.Code, TaskFailure.Class)
    /// They wait for other tasks.
    case blocked
    /// No live worker has a handler for the kind.
    case kind(TaskKind)
    /// No live worker has these storages.
    case storage(String)
  }

  package var reason: Reason
  package var tasks: Int
  /// Whether there may be more.
  package var isAtLeast: Bool

  package init(reason: Reason, tasks: Int, isAtLeast: Bool) {
    self.reason = reason
    self.tasks = tasks
    self.isAtLeast = isAtLeast
  }
}

/// How the fleet was during one step of time.
package struct FleetSample: Hashable, Sendable {
  /// When the step began.
  package var at: Timestamp
  /// At the last sample of the step.
  package var counts: [TaskState: Int]
  /// The mean of the samples.
  package var bytesPerSecond: Int64
  /// How many tasks ended since the last sample of the step before, by ``TaskState/succeeded``, ``TaskState/canceled`` and
  /// ``TaskState/failed``.
  package var ended: [TaskState: Int]

  package init(at: Timestamp, counts: [TaskState: Int], bytesPerSecond: Int64, ended: [TaskState: Int]) {
    self.at = at
    self.counts = counts
    self.bytesPerSecond = bytesPerSecond
    self.ended = ended
  }
}

/// Answers what operators ask about the fleet. Each call reads a bounded part of the store.
package protocol FleetInspector: Sendable {
  /// The newest failed tasks of these queues, or of all if it is empty, the group that failed last first.
  func failures(queues: Set<String>) async throws -> [FailureGroup]
  /// The hosts that have waiting or running tasks, or a limit.
  func hosts() async throws -> [HostUse]
  func storages() async throws -> [StorageUse]
  /// How long the oldest task of each queue that could run now has been ready.
  func oldestRunnable() async throws -> [String: Duration]
  /// What holds the tasks that do not run, the most tasks first.
  func heldTasks() async throws -> [HeldTasks]
  /// The samples from `start` to before `end`, in steps of `step` seconds that begin at multiples of it.
  func samples(from start: Timestamp, to end: Timestamp, step: Int) async throws -> [FleetSample]
}
