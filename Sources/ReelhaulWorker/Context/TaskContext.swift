import ReelhaulTasks

/// What a handler knows of its run, and how it tells how far it is. Callable from any thread.
public struct TaskContext<Checkpoint: Codable & Sendable>: Sendable {
  public let task: TaskInfo
  /// What an earlier run recorded last; nil where the task begins.
  public let lastCheckpoint: Checkpoint?
  /// Lines in the worker's log that name the task.
  public let logger: TaskLogger
  package let run: RunState

  package init(task: TaskInfo, lastCheckpoint: Checkpoint?, logger: TaskLogger, run: RunState) {
    self.task = task
    self.lastCheckpoint = lastCheckpoint
    self.logger = logger
    self.run = run
  }

  public var id: UniqueID { task.id }
  /// The number of this attempt, from 1.
  public var attempt: Int { task.attempt }
  /// The number of this owner of the task, higher than that of any before it: a fencing token for systems of your own.
  public var epoch: Int { task.epoch }
  public var labels: [String: String] { task.labels }
  /// When the attempt is stopped, if its policy has a timeout.
  public var deadline: ContinuousClock.Instant? { task.deadline }

  /// Tells how far the run is, in any unit. Costs next to nothing: call it as often as you like; at most four samples a
  /// second leave the worker. It also shows that the run is alive: one that reports nothing for ten minutes is stopped.
  public func report(done: Int64, total: Int64? = nil) {
    run.report(done: done, total: total)
  }

  /// Shows that the run is alive where there is no progress to tell of.
  public func heartbeat() {
    run.heartbeat()
  }

  /// Records `checkpoint`; it is in the database when this returns, and the next run gets it. `stage` says in a word what
  /// comes next, for people.
  ///
  /// Throws ``OwnershipLostError`` where the task has another owner now, a permanent ``TaskError`` where the JSON is
  /// longer than 64 KiB or nests more than 32 deep, and one that waits where the database refuses it.
  public func checkpoint(_ checkpoint: Checkpoint, stage: String? = nil) async throws {
    try await run.checkpoint(RunState.encode(checkpoint), stage: stage)
  }

  /// Why the run is to stop; nil while it is not. Swift's `Task.isCancelled` is true at the same time.
  public var stopReason: TaskStopReason? { run.stopReason }

  /// A directory of this run alone, empty at first, on the file system of the task's storage where the worker has one.
  /// It is removed when the run ends, and what a run that crashed left in its own is removed later.
  ///
  /// Throws ``TaskError``, which waits, where it cannot be made.
  public func scratch() async throws -> String {
    try await run.scratch()
  }

  /// Transfers with the worker's own engine, under the task's limits and the worker's network policy.
  public var transfer: TaskTransfer { TaskTransfer(run: run) }
}

/// A task as a run of it sees it.
public struct TaskInfo: Sendable {
  public let id: UniqueID
  public let kind: String
  /// From 1.
  public let attempt: Int
  public let epoch: Int
  public let priority: Int
  public let queue: String
  /// URLs as they were submitted; empty and nil where the task has none.
  public let source: String
  public let destination: String?
  public let labels: [String: String]
  public let deadline: ContinuousClock.Instant?
}

/// Why a run is to stop.
public enum TaskStopReason: String, Hashable, Sendable {
  /// Somebody paused the task: it goes on later, from its last checkpoint.
  case pause
  /// Somebody canceled the task.
  case cancel
  /// The worker ends: another one goes on with the task.
  case drain
  /// The run showed no sign of life for ten minutes.
  case stalled
  /// The attempt took longer than its policy allows.
  case timedOut = "timed_out"
  /// The task has another owner, or will have soon: touch nothing any more.
  case abandoned
}
