/// A task in the form that people and programs see: in `--json` of the CLI, and in the topic `tasks`.
public struct TaskDocument: Sendable, Hashable {
  /// The longest ``output``, in bytes.
  public static let outputLimit = 64 << 10

  public var spec: TaskSpec
  public var state: TaskState
  public var bytesTotal: Int64?
  public var bytesDone: Int64
  /// Bytes per second of a running task.
  public var rate: Int64?
  public var attempt: Int
  /// The boot of the worker that owns the task, or of the last owner.
  public var worker: UniqueID?
  public var epoch: Int
  public var generation: Int
  /// The sequence number of the last event.
  public var sequence: Int
  public var createdAt: Timestamp
  public var startedAt: Timestamp?
  public var finishedAt: Timestamp?
  /// When a queued task may run, if that lies ahead.
  public var runAt: Timestamp?
  public var sha256: [UInt8]?
  /// The result of a succeeded task: one JSON value.
  public var output: [UInt8]?
  public var error: TaskFailure?

  public init(
    spec: TaskSpec, state: TaskState, bytesTotal: Int64? = nil, bytesDone: Int64 = 0, rate: Int64? = nil,
    attempt: Int = 0, worker: UniqueID? = nil, epoch: Int = 0, generation: Int = 0, sequence: Int = 1,
    createdAt: Timestamp, startedAt: Timestamp? = nil, finishedAt: Timestamp? = nil, runAt: Timestamp? = nil,
    sha256: [UInt8]? = nil, output: [UInt8]? = nil, error: TaskFailure? = nil
  ) {
    self.spec = spec
    self.state = state
    self.bytesTotal = bytesTotal
    self.bytesDone = bytesDone
    self.rate = rate
    self.attempt = attempt
    self.worker = worker
    self.epoch = epoch
    self.generation = generation
    self.sequence = sequence
    self.createdAt = createdAt
    self.startedAt = startedAt
    self.finishedAt = finishedAt
    self.runAt = runAt
    self.sha256 = sha256
    self.output = output
    self.error = error
  }

  /// Seconds left at the current rate, if the total and the rate are known.
  public var eta: Int64? {
    guard state == .running else { return nil }
    return ProgressSample.eta(bytesDone: bytesDone, bytesTotal: bytesTotal, rate: rate)
  }
}
