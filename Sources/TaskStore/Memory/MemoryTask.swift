import TaskCore

/// A task of ``MemoryStore``. It is in exactly one place because it has only one.
struct MemoryTask {
  enum Place {
    /// In its state, not waiting for a worker.
    case resting
    /// May run now; lower positions first among equals.
    case ready(position: Int)
    /// May run later.
    case delayed(until: Timestamp)
    case running(Run)
  }

  struct Run {
    var epoch: Int
    var worker: WorkerID
    /// The number of the call that took it.
    var claimCall: Int64
    var attempt: Int
    var isPublishing = false
    var startedAt: Timestamp
    var bytesDone: Int64?
    var bytesTotal: Int64?
    var rate: Int64?
    var intent: Intent?
  }

  var spec: TaskSpec
  /// Where it rests: never running or publishing.
  var state: TaskState
  var place: Place = .resting
  /// What it still waits for.
  var waitsFor: Set<UUID> = []
  var attempt = 0
  var epoch = 0
  /// The epoch that was last ended by its owner.
  var settledEpoch = 0
  var sequence = 0
  var createdAt: Timestamp
  var startedAt: Timestamp?
  var finishedAt: Timestamp?
  var bytesDone: Int64 = 0
  var bytesTotal: Int64?
  var generation = 0
  var worker: UUID?
  var sha256: [UInt8]?
  var error: TaskFailure?
  var checkpoint: Checkpoint?

  var run: Run? {
    get {
      guard case .running(let run) = place else { return nil }
      return run
    }
    set {
      if let newValue { place = .running(newValue) }
    }
  }

  /// The run of this epoch; nil where the epoch does not own the task.
  func run(epoch: Int) -> Run? {
    guard let run, run.epoch == epoch else { return nil }
    return run
  }

  var effectiveState: TaskState {
    guard let run else { return state }
    return run.isPublishing ? .publishing : .running
  }

  func document(boot: UUID?) -> TaskDocument {
    var runAt: Timestamp?
    if case .delayed(let until) = place { runAt = until }
    return TaskDocument(
      spec: spec, state: effectiveState, bytesTotal: run?.bytesTotal ?? bytesTotal,
      bytesDone: run?.bytesDone ?? bytesDone, rate: run?.rate, attempt: run?.attempt ?? attempt,
      worker: boot ?? worker, epoch: run?.epoch ?? epoch, generation: checkpoint?.generation ?? generation,
      sequence: sequence, createdAt: createdAt, startedAt: run?.startedAt ?? startedAt, finishedAt: finishedAt,
      runAt: runAt, sha256: sha256, error: error)
  }
}
