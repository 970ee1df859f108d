import ReelhaulTasks
import TaskCore
import WorkerCore

/// A handler's view of its run, with which it also reports and records its progress. Callable from any thread.
public struct TaskContext<Checkpoint: Codable & Sendable>: Sendable {
  public let task: TaskInfo
  /// The last checkpoint that an earlier run recorded; nil if there is none.
  public let lastCheckpoint: Checkpoint?
  /// Writes lines to the worker's log; each line names the task.
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
  /// The number of this claim of the task, higher than every earlier one. Use it as a fencing token for your own
  /// systems.
  public var epoch: Int { task.epoch }
  public var labels: [String: String] { task.labels }
  /// When the attempt will be stopped; nil if its policy has no timeout.
  public var deadline: ContinuousClock.Instant? { task.deadline }

  /// The span of this run, as a `traceparent` of W3C Trace Context: send it with requests of your own, so that they are
  /// seen in the task's trace. Nil if the task is not traced.
  public var traceparent: String? { run.ledger.trace?.traceparent }

  /// Reports the progress, in any unit. It is cheap, so call it as often as you like; the worker publishes at most four
  /// samples a second. It also shows that the run is alive: a run without any report for ten minutes is stopped.
  public func report(done: Int64, total: Int64? = nil) {
    run.report(done: done, total: total)
  }

  /// Shows that the run is alive while there is no progress to report.
  public func heartbeat() {
    run.ledger.pulse()
  }

  /// Records `checkpoint`. When this returns, it is in the database, and the next run will get it. `stage` is one word
  /// for people that says what comes next, of at most 256 bytes.
  ///
  /// Throws ``OwnershipLostError`` where the task has another owner now, a permanent ``TaskError`` where the JSON is
  /// longer than 64 KiB (with the records of begun transfers, 256 KiB), nests more than 32 deep, has the character NUL or
  /// would have a number that is not finite, or where the stage is too long or `publishing`, and one that waits where the
  /// database refuses it.
  public func checkpoint(_ checkpoint: Checkpoint, stage: String? = nil) async throws {
    try await run.checkpoint(RunState.encode(checkpoint), stage: stage)
  }

  /// Why the run must stop; nil if it need not. Swift's `Task.isCancelled` is true at the same time.
  public var stopReason: TaskStopReason? { run.ledger.stopReason.map(TaskStopReason.init) }

  /// A directory for this run only, empty at first. If the worker has a storage, the directory is on its file system.
  /// It is removed when the run ends. That of a crashed run is removed later, that of a removed task after seven days;
  /// without a storage, only by the next run of the task that makes one on the same machine.
  ///
  /// Throws a ``TaskError`` that waits if the directory cannot be made, and ``OwnershipLostError`` after the run's end.
  public func scratch() async throws -> String {
    try await run.scratchDirectory.path()
  }

  /// Transfers with the worker's own engine, under the task's limits and the worker's network policy.
  public var transfer: TaskTransfer { TaskTransfer(run: run) }
}

/// A task as its handler sees it.
public struct TaskInfo: Sendable {
  public let id: UniqueID
  public let kind: String
  /// From 1.
  public let attempt: Int
  public let epoch: Int
  public let priority: Int
  public let queue: String
  /// The URLs as they were submitted. If the task has none, `source` is empty and `destination` is nil.
  public let source: String
  public let destination: String?
  public let labels: [String: String]
  public let deadline: ContinuousClock.Instant?
}

/// Why a run must stop.
public enum TaskStopReason: String, Hashable, Sendable {
  /// The task was paused. It continues later from its last checkpoint.
  case pause
  /// The task was canceled.
  case cancel
  /// The worker ends, and another one will continue the task.
  case drain
  /// The run showed no sign of life for ten minutes.
  case stalled
  /// The attempt took longer than its policy allows.
  case timedOut = "timed_out"
  /// The task has another owner, or will have one soon: change nothing any more.
  case abandoned
}
