import TaskCore
import TaskStore

/// A task of ``MemoryStore``: the state machine that decides about it, and what else there is to know.
struct MemoryTask {
  /// Where a queued task waits.
  enum Place {
    /// May run now; lower positions first among equals.
    case ready(position: Int)
    /// May run later.
    case delayed(until: Timestamp)
  }

  /// What a worker that owns a task has told of it.
  struct Run {
    var worker: WorkerID
    /// The number of the call that took it.
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
  /// Of a queued task, and of no other.
  var place: Place?
  /// Of a task that runs or is being published, and of no other.
  var run: Run?
  /// What it still comes after.
  var waitsFor: Set<UniqueID>
  /// The epoch that was last ended by its owner.
  var settledEpoch = 0
  var createdAt: Timestamp
  var startedAt: Timestamp?
  var finishedAt: Timestamp?
  var bytesDone: Int64 = 0
  var bytesTotal: Int64?
  var generation = 0
  var worker: UniqueID?
  var sha256: [UInt8]?
  var output: [UInt8]?
  var error: TaskFailure?
  var checkpoint: Checkpoint?

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

  /// `boot` is that of the worker that runs it.
  func document(boot: UniqueID?) -> TaskDocument {
    var runAt: Timestamp?
    if case .delayed(let until) = place { runAt = until }
    return TaskDocument(
      spec: spec, state: machine.state, bytesTotal: run?.bytesTotal ?? bytesTotal,
      bytesDone: run?.bytesDone ?? bytesDone, rate: run?.rate, attempt: machine.attempt, worker: boot ?? worker,
      epoch: machine.epoch, generation: checkpoint?.generation ?? generation, sequence: machine.sequence,
      createdAt: createdAt, startedAt: run?.startedAt ?? startedAt, finishedAt: finishedAt, runAt: runAt,
      sha256: sha256, output: output, error: error)
  }

  /// Keeps of a run that ends what outlives it.
  mutating func endRun(boot: UniqueID?) {
    guard let run else { return }
    startedAt = run.startedAt
    // What the run had besides is lost.
    bytesDone = checkpoint?.bytesDone ?? 0
    bytesTotal = run.bytesTotal ?? bytesTotal
    generation = checkpoint?.generation ?? generation
    worker = boot
    self.run = nil
  }
}
