import ReelhaulSystem
import ReelhaulWorker
import TaskCore
import WorkerCore

/// When a run is stopped.
public enum HandlerMoment: Hashable, Sendable {
  /// After the nth checkpoint of the run, from 1: it is recorded, and its call has not returned.
  case checkpoint(Int)
  /// After the nth report of the run, from 1. A report waits for nothing, so the handler's code goes on meanwhile.
  case report(Int)
}

/// How a run is stopped.
public enum HandlerStop: Hashable, Sendable {
  /// The process dies. After a checkpoint the handler's code does not continue, not even to clean up. After a report it
  /// does: its Swift task is canceled, and nothing that it records counts.
  case crash
  /// The task is paused.
  case pause
  /// The task is canceled.
  case cancel
  /// The worker ends and hands its tasks back.
  case drain
  /// The worker loses its lease, and the task may have another owner. The handler does not know this and continues, but
  /// every record of it is refused.
  case leaseLost
  /// The attempt takes longer than its policy allows.
  case timeout

  var reason: WorkerCore.StopReason? {
    switch self {
    case .crash, .leaseLost: nil
    case .pause: .intent(.pause)
    case .cancel: .intent(.cancel)
    case .drain: .drain
    case .timeout: .timedOut
    }
  }
}

/// The result of one run of a handler.
public struct HandlerRun<Handler: TaskHandler>: Sendable {
  public enum Outcome: Sendable {
    case succeeded(Handler.Output)
    /// The attempt failed; `failure.isRetryable` says whether the task may be tried again.
    case failed(TaskFailure)
    /// The run had to stop, and did.
    case stopped(TaskStopReason?)
    /// The run ended as if its process had died.
    case crashed
    /// The run had lost its task before it ended: its result or error has no effect.
    case ownershipLost
  }

  public struct Report: Hashable, Sendable {
    public var done: Int64
    public var total: Int64?
  }

  public let outcome: Outcome
  /// From 1.
  public let attempt: Int
  public let epoch: Int
  /// The checkpoint with which the run began; nil if there was none.
  public let firstCheckpoint: Handler.Checkpoint?
  /// The checkpoints that the run recorded, in order.
  public let checkpoints: [Handler.Checkpoint]
  public let reports: [Report]

  /// The output if the run succeeded.
  public var output: Handler.Output? { if case .succeeded(let output) = outcome { output } else { nil } }
  /// The failure if the run failed.
  public var failure: TaskFailure? { if case .failed(let failure) = outcome { failure } else { nil } }
  public var isCrashed: Bool { if case .crashed = outcome { true } else { false } }
  public var isOwnershipLost: Bool { if case .ownershipLost = outcome { true } else { false } }
  /// Why the run stopped, if it was stopped; otherwise nil.
  public var stopped: TaskStopReason? { if case .stopped(let reason) = outcome { reason } else { nil } }
}

/// Records one run, and stops it at the planned moment.
final class RunRecorder: RunObserver {
  typealias OnStop = @Sendable (HandlerStop, Task<Void, Never>) async -> Void

  private struct State {
    var plan: (moment: HandlerMoment, stop: HandlerStop)?
    var onStop: OnStop?
    var onDeath: (@Sendable () -> Void)?
    var task: Task<Void, Never>?
    var isDead = false
    var checkpoints: [[UInt8]] = []
    var reports: [(done: Int64, total: Int64?)] = []
    var end: CheckedContinuation<RunOutcome?, Never>?

    mutating func take(at moment: HandlerMoment) -> HandlerStop? {
      guard let plan, plan.moment == moment else { return nil }
      self.plan = nil
      return plan.stop
    }
  }

  private let state: Lock<State>

  init(_ plan: (moment: HandlerMoment, stop: HandlerStop)?) {
    state = Lock(State(plan: plan))
  }

  var checkpoints: [[UInt8]] { state.withLock { $0.checkpoints } }
  var reports: [(done: Int64, total: Int64?)] { state.withLock { $0.reports } }

  func onStop(_ body: @escaping OnStop) { state.withLock { $0.onStop = body } }

  /// `body` is called before the handler's code can go on.
  func onDeath(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.onDeath = body } }

  /// The outcome of `body`; nil if the process has died.
  func outcome(of body: @escaping @Sendable () async -> RunOutcome) async -> RunOutcome? {
    await withCheckedContinuation { continuation in
      // Under the lock, so that the run comes to no moment before its task is known: a stop would not reach it.
      state.withLock { state in
        state.end = continuation
        state.task = Task { self.finish(await body()) }
      }
    }
  }

  private func finish(_ outcome: RunOutcome?) {
    state.withLock { $0.end.take() }?.resume(returning: outcome)
  }

  func reported(done: Int64, total: Int64?) {
    let stop = state.withLock { state -> HandlerStop? in
      guard !state.isDead else { return nil }
      state.reports.append((done, total))
      return state.take(at: .report(state.reports.count))
    }
    guard let stop else { return }
    if stop == .crash { return die() }
    Task { await self.carryOut(stop) }
  }

  func checkpointed(_ json: [UInt8]) async {
    let (stop, isDead) = state.withLock { state in
      if !state.isDead { state.checkpoints.append(json) }
      return (state.take(at: .checkpoint(state.checkpoints.count)), state.isDead)
    }
    if isDead { return await forever() }
    guard let stop else { return }
    if stop == .crash {
      die()
      return await forever()
    }
    await carryOut(stop)
  }

  private func carryOut(_ stop: HandlerStop) async {
    let (onStop, task) = state.withLock { ($0.onStop, $0.task) }
    guard let onStop, let task else { return }
    await onStop(stop, task)
  }

  private func die() {
    let (onDeath, task) = state.withLock { state in
      state.isDead = true
      return (state.onDeath, state.task)
    }
    onDeath?()
    finish(nil)
    task?.cancel()
  }

  /// Never returns: the process is dead, so the handler's code must not continue.
  private func forever() async {
    await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
  }
}
