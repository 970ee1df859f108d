import ReelhaulCodec
import ReelhaulSystem
import ReelhaulTasks
import ReelhaulTelemetry
import TaskCore
import TaskStore
import TransferEngine
import WorkerCore

/// Wraps every run of every handler, to measure, to trace or to open a resource. It must call `next` once. The error
/// that `next` throws decides what happens to the task, also if the middleware catches it, unless the middleware throws
/// another error.
public typealias TaskMiddleware =
  @Sendable (_ task: TaskInfo, _ next: @Sendable () async throws -> Void) async throws -> Void

/// Runs a ``TaskHandler`` as a handler of the worker.
package struct HandlerAdapter<Handler: TaskHandler>: KindHandler {
  let handler: Handler
  let middleware: [TaskMiddleware]
  let roots: StorageRoots?
  let log: Logger
  let observer: (any RunObserver)?

  package init(
    _ handler: Handler, middleware: [TaskMiddleware] = [], roots: StorageRoots?, log: Logger,
    observer: (any RunObserver)? = nil
  ) {
    self.observer = observer
    self.handler = handler
    self.middleware = middleware
    self.roots = roots
    self.log = log
  }

  package var kind: TaskKind { TaskKind(rawValue: Handler.kind) }
  package var aliases: [TaskKind] { Handler.aliases.map(TaskKind.init) }
  package var typeName: String { String(reflecting: Handler.self) }

  package var policy: KindPolicy {
    let policy = handler.policy
    let intervals =
      switch policy.backoff {
      case .exponential: [Int]()
      case .seconds(let seconds): seconds
      }
    return KindPolicy(
      retry: RetryPolicy(maxAttempts: policy.maxAttempts, intervals: intervals), timeout: policy.timeout,
      concurrency: policy.concurrency)
  }

  package func run(_ claim: Claim, ledger: RunLedger) async -> RunOutcome {
    // Never on the worker's own loop, because a handler may block.
    await withTaskExecutorPreference(globalConcurrentExecutor) { await execute(claim, ledger) }
  }

  package func cleanUp(_ cleanup: Cleanup) async throws {
    do {
      try await withTaskExecutorPreference(globalConcurrentExecutor) { try await deleteRest(cleanup) }
    } catch {
      // The error is stored and logged, as that of a run.
      throw TaskFailure(error)
    }
  }

  private func deleteRest(_ cleanup: Cleanup) async throws {
    let payload = try PayloadJSON.decode(cleanup.checkpoint)
    let names = Array(payload.transfers.keys) + [cleanup.spec.destination].compactMap(\.self)
    // A staging file may be on a volume that is gone. What the handler has left elsewhere does not wait for it.
    var failure: (any Error)?
    do {
      try await roots?.cleanUp(
        cleanup, checkpoints: payload.transfers.values.map(\.checkpoint),
        publishers: names.map { TaskTransfer.id(of: $0, task: cleanup.spec.id) })
    } catch {
      failure = error
    }
    if let checkpoint = payload.checkpoint {
      try await handler.cleanUp(
        cleanup.spec.parameters(of: Handler.self), after: JSONValue.decode(Handler.Checkpoint.self, from: checkpoint),
        storage: TaskStorage(roots: roots))
    }
    if let failure { throw failure }
  }

  private func execute(_ claim: Claim, _ ledger: RunLedger) async -> RunOutcome {
    let parameters: Handler.Parameters
    do throws(InvalidTask) {
      parameters = try claim.spec.parameters(of: Handler.self)
    } catch {
      return .failed(TaskFailure(code: .parametersInvalid, message: TaskFailure.message("\(error)"), class: .fail))
    }
    let payload: RunState.Payload
    let last: Handler.Checkpoint?
    do {
      payload = try PayloadJSON.decode(claim.checkpoint)
      last = try payload.checkpoint.map { try JSONValue.decode(Handler.Checkpoint.self, from: $0) }
    } catch {
      // A newer worker may have written the checkpoint. This worker must not begin anew and so destroy its work.
      let message =
        "this worker cannot read the checkpoint: \(TaskFailure.message("\(error)")); "
        + "cancel and retry the task to begin anew"
      return .failed(TaskFailure(code: .checkpointUnreadable, message: message, class: .wait))
    }

    // It may have waited for a thread, which counts.
    let task = TaskInfo(claim, timeLeft: handler.policy.timeout.map { $0 - ledger.begunAt.duration(to: .now) })
    let run = RunState(ledger: ledger, payload: payload, roots: roots, observer: observer)
    let context = TaskContext(
      task: task, lastCheckpoint: last, logger: TaskLogger(log, of: ledger), run: run)
    let outcome: RunOutcome
    do {
      let output = try await call(parameters, context)
      outcome = try .succeeded(sha256: nil, bytes: ledger.bytesDone, output: Self.encode(output))
    } catch {
      outcome = Self.outcome(of: error, ledger)
    }
    // It may take long, and must not block the worker's own loop.
    ledger.leave { hasSucceeded in
      await withTaskExecutorPreference(globalConcurrentExecutor) {
        if hasSucceeded { await run.discardRest() }
        await run.scratchDirectory.remove()
      }
    }
    return outcome
  }

  private func call(
    _ parameters: Handler.Parameters, _ context: TaskContext<Handler.Checkpoint>
  ) async throws -> Handler.Output {
    let made = Lock<(output: Handler.Output?, error: (any Error)?)>((nil, nil))
    // Before each step, because the wait for a thread, or for a middleware, may have been long.
    let mayGoOn: @Sendable () throws -> Void = {
      guard context.stopReason == nil else { throw CancellationError() }
    }
    var next: @Sendable () async throws -> Void = { [handler] in
      do {
        try mayGoOn()
        let output = try await handler.run(parameters, context: context)
        made.withLock { $0.output = output }
      } catch {
        made.withLock { $0.error = error }
        throw error
      }
    }
    for layer in middleware.reversed() {
      let inner = next
      next = {
        try mayGoOn()
        try await layer(context.task, inner)
      }
    }
    try await next()
    let (output, error) = made.withLock { $0 }
    if let output { return output }
    // A middleware has caught it.
    if let error { throw error }
    // One that is canceled may well give up before it calls the handler.
    try mayGoOn()
    throw TaskError.permanent("a middleware did not call its next", code: "middleware_error")
  }

  /// Returns nil if the kind has no output.
  private static func encode(_ output: Handler.Output) throws -> [UInt8]? {
    guard Handler.Output.self != NoOutput.self else { return nil }
    let json = try RunState.encode(output)
    guard json.count <= TaskDocument.outputLimit else {
      throw TaskError.permanent(
        "the output has \(json.count) bytes, but may have at most \(TaskDocument.outputLimit)",
        code: TaskFailure.Code.outputTooLong.rawValue)
    }
    return json
  }

  private static func outcome(of error: any Error, _ ledger: RunLedger) -> RunOutcome {
    if error is CancellationError {
      guard ledger.stopReason == nil else { return .stopped }
      // The run need not have stopped. The task is handed back and waits, because at once it would run again for ever.
      return .failed(
        TaskFailure(code: .handlerCanceled, message: "the handler threw CancellationError by itself", class: .wait))
    }
    // A run that must stop, or that has lost its task, may end with any error, for example because its child process
    // was killed. OwnershipLostError is an ordinary error unless the run has lost its task: at once it would run again
    // for ever.
    if ledger.stopReason != nil, (error as? TaskError)?.meaning != .permanent { return .stopped }
    return .failed(TaskFailure(error))
  }
}

extension TaskInfo {
  fileprivate init(_ claim: Claim, timeLeft: Duration?) {
    let spec = claim.spec
    self.init(
      id: spec.id, kind: spec.kind.rawValue, attempt: claim.attempt, epoch: claim.epoch, priority: spec.priority,
      queue: spec.queue, source: spec.source, destination: spec.destination, labels: spec.labels,
      deadline: timeLeft.map { .now + $0 })
  }
}
