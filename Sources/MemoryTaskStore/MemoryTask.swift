import TaskCore
import TaskStore

/// A task of ``MemoryStore``: the state machine that decides about it, and its other data.
struct MemoryTask {
  /// Where a queued task waits.
  enum Place {
    /// The task may run now; within a queue, lower positions come first.
    case ready(position: Int)
    /// The task may run later.
    case delayed(until: Timestamp)
  }

  /// The run of a task, with the progress that its worker has reported.
  struct Run {
    var worker: WorkerID
    /// The number of the call that claimed the task.
    var claimCall: Int64
    var startedAt: Timestamp
    var bytesDone: Int64?
    var bytesTotal: Int64?
    var rate: Int64?
  }

  var spec: TaskSpec
  /// What limits how many tasks like it run.
  let buckets: [MemoryState.Bucket]
  /// What must be mounted by the worker that runs it.
  let storages: [String]
  var machine: TaskMachine
  /// Only a queued task has a place.
  var place: Place?
  /// Only a task that runs or is being published has a run.
  var run: Run?
  /// The tasks that must still succeed before this one.
  var waitsFor: Set<UniqueID>
  /// The last epoch that its own worker settled.
  var settledEpoch = 0
  var createdAt: Timestamp
  var startedAt: Timestamp?
  var finishedAt: Timestamp?
  var bytesDone: Int64 = 0
  var bytesTotal: Int64?
  /// That of the last checkpoint, also if that has gone; nil if there was none.
  var generation: Int?
  var worker: UniqueID?
  var sha256: [UInt8]?
  var output: [UInt8]?
  var error: TaskFailure?
  var checkpoint: Checkpoint?
  /// The epoch that recorded the checkpoint.
  var checkpointEpoch: Int?
  /// How many runs in a row were lost before their first checkpoint.
  var losses = 0
  /// Who asked for the intent.
  var intentActor: String?

  init(spec: TaskSpec, machine: TaskMachine, waitsFor: Set<UniqueID>, createdAt: Timestamp) {
    let lane = LaneKey(spec)
    buckets =
      [
        MemoryState.Bucket(scope: .total, name: ""), MemoryState.Bucket(scope: .kind, name: lane.kind.rawValue),
        MemoryState.Bucket(scope: .queue, name: lane.queue), MemoryState.Bucket(scope: .host, name: lane.host),
        MemoryState.Bucket(scope: .storage, name: lane.storage),
      ] + (lane.sourceStorage.isEmpty ? [] : [MemoryState.Bucket(scope: .storage, name: lane.sourceStorage)])
    storages = lane.storages
    self.spec = spec
    self.machine = machine
    self.waitsFor = waitsFor
    self.createdAt = createdAt
  }

  var isReady: Bool {
    if case .ready? = place { true } else { false }
  }

  func isOwned(by epoch: Int) -> Bool { run != nil && machine.epoch == epoch }

  /// - Parameter boot: The boot of the worker that runs the task.
  func document(boot: UniqueID?) -> TaskDocument {
    var runAt: Timestamp?
    if case .delayed(let until) = place { runAt = until }
    return TaskDocument(
      spec: spec, state: machine.state, bytesTotal: run?.bytesTotal ?? bytesTotal,
      bytesDone: run?.bytesDone ?? bytesDone, rate: run?.rate, attempt: machine.attempt, worker: boot ?? worker,
      epoch: machine.epoch, generation: checkpoint?.generation ?? generation ?? 0, sequence: machine.sequence,
      createdAt: createdAt, startedAt: run?.startedAt ?? startedAt, finishedAt: finishedAt, runAt: runAt,
      sha256: sha256, output: output, error: error)
  }

  /// Ends the run, and keeps the part of its data that the task needs later.
  mutating func endRun(boot: UniqueID?) {
    guard let run else { return }
    startedAt = run.startedAt
    // Bytes that are not in the checkpoint are lost.
    bytesDone = checkpoint?.bytesDone ?? 0
    bytesTotal = run.bytesTotal ?? bytesTotal
    generation = checkpoint?.generation ?? generation
    worker = boot
    self.run = nil
  }
}
