import MemoryTaskStore
import ReelhaulCodec
import ReelhaulSystem
import ReelhaulTelemetry
import ReelhaulWorker
import TaskCore
import TaskStore
import TransferEngine
import WorkerCore

/// Runs a handler like a worker, with leases, epochs, checkpoints, retries and events, but without Kafka and
/// PostgreSQL.
///
/// ```swift
/// let test = try await HandlerTest(Transcode.Parameters(video: "a.mp4")) { Transcode() }
/// await test.stop(after: .checkpoint(2), as: .crash)
/// #expect(try await test.run().isCrashed)
/// let run = try await test.resume()              // a fresh instance, as in another worker
/// #expect(run.firstCheckpoint?.step == 2)
/// #expect(try await test.events == [.submitted, .started, .released, .started, .succeeded])
/// await test.close()
/// ```
///
/// The handler has a storage named `default` in a temporary directory, and may reach addresses of this machine.
public actor HandlerTest<Handler: TaskHandler> {
  public typealias Moment = HandlerMoment
  public typealias Stop = HandlerStop

  private let make: @Sendable () -> Handler
  private let spec: TaskSpec
  private let store = MemoryStore()
  private let loop = EventLoop(name: "handler-test")
  private let roots: StorageRoots
  private let directory: TemporaryDirectory
  private let log = Logger(level: .error)
  private var planner = SettlementPlanner(seed: 1)
  private var plan: (moment: Moment, stop: Stop)?
  private var runCount = 0

  /// Submits a task with `parameters`. `change` sets its other fields, such as labels or a destination. `make` makes
  /// the handler for each run.
  ///
  /// Throws ``InvalidTask`` if a producer could not submit the task either.
  public init(
    _ parameters: Handler.Parameters, change: (inout TaskSpec) -> Void = { _ in },
    _ make: @escaping @Sendable () -> Handler
  ) async throws {
    self.make = make
    var spec = try TaskSpec(Handler.self, parameters)
    change(&spec)
    try spec.validate()
    self.spec = spec
    directory = try TemporaryDirectory(prefix: "reelhaul-handler-test")
    let storage = Storage(roots: ["default": "\(directory.path)/default"])
    try storage.initialise()
    let network = NetworkPolicy(allowed: try [CIDR("127.0.0.0/8"), CIDR("::1/128")])
    roots = StorageRoots(storage, loop: loop, settings: .init(permits: { network.permits(sockaddr: $0) }))
    _ = try await store.apply([.submit(spec)])
  }

  /// The directory of the storage `default`.
  public nonisolated var storagePath: String { "\(directory.path)/default" }

  public nonisolated var id: UniqueID { spec.id }

  /// Stops the next run at a moment, unless the run ends before it.
  public func stop(after moment: Moment, as stop: Stop) {
    plan = (moment, stop)
  }

  /// Runs the task once, to its end or until it is stopped. Throws ``HandlerTestError`` if the task cannot run now, and
  /// `WorkerError` if no worker would start with the handler.
  @discardableResult
  public func run() async throws -> HandlerRun<Handler> {
    let recorder = RunRecorder(plan)
    let handler = make()
    try ReelhaulWorker.check(handler)
    let adapter = HandlerAdapter(handler, roots: roots, log: log, observer: recorder)
    let worker = try await worker(with: adapter)
    guard let claim = try await store.claim(worker, limit: 1, call: 1).first else {
      throw HandlerTestError(message: "the task is \(try await state.rawValue), and cannot run now")
    }
    let fence = Fence(until: .now + .seconds(3600))
    let lease = Lease(worker: worker, boot: UniqueID(high: 0, low: UInt64(runCount)), fence: fence)
    let batcher = StoreBatcher(store: store, loop: loop, log: log)
    let ledger = RunLedger(claim: claim, lease: lease, store: batcher)
    plan = nil
    recorder.onDeath { fence.close() }
    recorder.onStop { [store, spec] stop, task in
      switch stop {
      case .crash: return
      case .leaseLost:
        fence.close()
        store.expireLease(of: worker)
        _ = try? await store.sweep()
        return
      case .pause: await Self.control(.pause, spec, store)
      case .cancel: await Self.control(.cancel, spec, store)
      case .drain, .timeout: break
      }
      if let reason = stop.reason { ledger.tellToStop(reason) }
      task.cancel()
    }
    let outcome = await recorder.outcome(of: { await adapter.run(claim, ledger: ledger) })
    return try await settle(outcome, adapter, recorder, claim, ledger, worker)
  }

  /// Runs the task again with a new handler, after a stop or a failed attempt. It first resumes a paused task, retries
  /// a failed or canceled one, makes a waiting one due, and ends the lease of a crashed worker.
  @discardableResult
  public func resume() async throws -> HandlerRun<Handler> {
    switch try await state {
    case .paused: await Self.control(.resume, spec, store)
    case .failed, .canceled: await Self.control(.retry, spec, store)
    default: break
    }
    store.makeDue(spec.id)
    _ = try await store.sweep()
    return try await run()
  }

  /// Cancels the task, unless it has ended, and carries out the clean-up that a canceled task leaves, with a new handler, as
  /// another worker would. Returns whether there was one.
  ///
  /// Throws a ``TaskFailure`` with the code and text of what the handler throws; the next call repeats the clean-up.
  @discardableResult
  public func cleanUp() async throws -> Bool {
    await Self.control(.cancel, spec, store)
    store.makeCleanupsDue()
    let adapter = HandlerAdapter(make(), roots: roots, log: log)
    let worker = try await worker(with: adapter)
    guard let cleanup = try await store.claimCleanups(worker, limit: 1, except: []).first else { return false }
    do {
      try await adapter.cleanUp(cleanup)
    } catch {
      try await store.returnCleanups([cleanup.id])
      throw error
    }
    try await store.finishCleanups([cleanup.id])
    return true
  }

  private func worker(with adapter: HandlerAdapter<Handler>) async throws -> WorkerID {
    runCount += 1
    return try await store.register(
      WorkerRegistration(
        boot: UniqueID(milliseconds: UInt64(runCount)), host: "test", pid: 1, leaseSeconds: 3600,
        kinds: [adapter.kind] + adapter.aliases, volumes: roots.storage.volumes))
  }

  /// The events of the task so far.
  public var events: [TaskEvent.Kind] {
    get async throws {
      try await store.pendingEvents(limit: .max, bytes: .max, excluding: []).batches.map(\.kind)
    }
  }

  /// The state of the task.
  public var state: TaskState {
    get async throws { try await store.states(of: [spec.id])[spec.id] ?? .canceled }
  }

  /// Removes the temporary directory and ends the threads.
  public func close() async {
    await roots.close()
    await Task.detached { [loop, log] in
      loop.shutdown()
      log.close()
    }.value
  }

  private func settle(
    _ outcome: RunOutcome?, _ adapter: HandlerAdapter<Handler>, _ recorder: RunRecorder, _ claim: Claim,
    _ ledger: RunLedger, _ worker: WorkerID
  ) async throws -> HandlerRun<Handler> {
    var ended: HandlerRun<Handler>.Outcome
    let isLost = ledger.stopReason == .abandoned
    switch outcome {
    case nil:
      ended = .crashed
      store.expireLease(of: worker)
      _ = try await store.sweep()
    case .succeeded(_, _, let output)? where !isLost:
      let value = try output.map { try JSONValue.decode(Handler.Output.self, from: $0) }
      ended = .succeeded(try value ?? JSONValue.decode(Handler.Output.self, from: Array("null".utf8)))
    case .failed(let failure)? where !isLost: ended = .failed(failure)
    case .stopped? where !isLost: ended = .stopped(ledger.stopReason.map(TaskStopReason.init))
    default: ended = .ownershipLost
    }
    if let outcome {
      let settlement = planner.settlement(
        of: .init(
          attempt: claim.attempt, epoch: claim.epoch,
          retry: adapter.policy.retry(of: claim.spec),
          outcome: outcome, stop: ledger.stopReason, newBytes: ledger.newBytes, size: ledger.bytesTotal))
      if let settlement {
        _ = try await store.settle([Settlement(taskID: claim.spec.id, epoch: claim.epoch, outcome: settlement)])
      }
      await ledger.finish(hasSucceeded: try await store.task(claim.spec.id)?.state == .succeeded)
    }
    let before = try RunState.checkpoint(of: claim.checkpoint)
    return HandlerRun(
      outcome: ended, attempt: claim.attempt, epoch: claim.epoch,
      firstCheckpoint: try before.map { try JSONValue.decode(Handler.Checkpoint.self, from: $0) },
      checkpoints: try recorder.checkpoints.map { try JSONValue.decode(Handler.Checkpoint.self, from: $0) },
      reports: recorder.reports.map { .init(done: $0.done, total: $0.total) })
  }

  private static func control(_ action: ControlAction, _ spec: TaskSpec, _ store: MemoryStore) async {
    let id = UniqueID(high: .random(in: 0 ... .max), low: .random(in: 0 ... .max))
    _ = try? await store.apply([.control(Command.Control(id: id, taskID: spec.id, action: action))])
  }
}

/// A call of the test kit cannot be carried out.
public struct HandlerTestError: Error, Hashable, Sendable, CustomStringConvertible {
  public var message: String

  public var description: String { message }
}
