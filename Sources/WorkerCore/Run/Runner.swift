import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore
import TransferEngine

/// Carries out the decisions of ``RunTable``: starts a handler for every claim, cancels handlers, and writes the ends
/// of runs.
package actor Runner {
  /// The ledger and the Swift task of one run.
  private struct Work {
    let ledger: RunLedger
    /// Whether its end is written, or will not be, and is counted. Then the run only finishes what it has left.
    var isCounted = false
    /// Whether its end is being written, because it does not stop.
    var isHandedBack = false
    var hasReturned = false
    let task: Task<Void, any Error>
  }

  private let loop: EventLoop
  private let handlers: HandlerTable
  private let store: StoreBatcher
  private let metrics: WorkerMetrics
  private let tracer: Tracer?
  private let log: Logger
  /// Called when a run has ended.
  private let onFree: @Sendable () async -> Void
  private var planner = SettlementPlanner(seed: .random(in: 0 ... .max))
  private var table: RunTable
  /// One entry for every run whose handler has not returned.
  private var works: [RunTable.ID: Work] = [:]
  private var idleWaiters: [CheckedContinuation<Void, Never>] = []

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  package init(
    loop: EventLoop, concurrency: Int, handlers: HandlerTable, store: StoreBatcher, watchdog: Watchdog,
    metrics: WorkerMetrics = WorkerMetrics(kinds: []), tracer: Tracer? = nil, log: Logger,
    onFree: @escaping @Sendable () async -> Void
  ) {
    self.loop = loop
    self.handlers = handlers
    self.store = store
    self.metrics = metrics
    self.tracer = tracer
    self.log = log
    self.onFree = onFree
    table = RunTable(concurrency: concurrency, watchdog: watchdog)
  }

  package var free: Int { table.free }

  package var running: Int { table.running }

  /// Whether a detached run has not returned. It may wait for something that never comes.
  package var hasDetached: Bool { table.hasDetached }

  /// Whether the task runs here.
  package func isRunning(_ id: UniqueID) -> Bool { table.isRunning(id) }

  // MARK: Starting and ending

  package func start(_ claims: [Claim], under lease: Lease) {
    guard lease.fence.isOpen else { return }
    let now = BootInstant.now
    for claim in claims {
      let life = tracer?.life(of: claim.spec) ?? Tracer.life(of: claim.spec)
      let ledger = RunLedger(claim: claim, lease: lease, store: store, trace: life?.child())
      let meter = ProgressMeter(bytesDone: ledger.bytesDone, bytesTotal: ledger.bytesTotal, now: now)
      let deadline = handlers[claim.spec.kind]?.policy.timeout.map { now + $0 }
      let id = table.begin(claim, under: lease.worker, meter: meter, deadline: deadline)
      works[id] = Work(ledger: ledger, task: loop.task { await self.run(id, ledger) })
    }
  }

  private func run(_ id: RunTable.ID, _ ledger: RunLedger) async {
    let kind = ledger.claim.spec.kind
    let outcome: RunOutcome
    if let handler = handlers[kind] {
      outcome = await handler.run(ledger.claim, ledger: ledger)
    } else {
      let failure = TaskFailure(
        code: .noHandler, message: "this worker has no handler for the kind \(kind.rawValue)", class: .wait)
      outcome = .failed(failure)
    }
    let hasSucceeded = await settle(id, ledger, outcome)
    await ledger.finish(hasSucceeded: hasSucceeded)
    table.returned(id)
    works[id]?.hasReturned = true
    forget(id)
    noteIdle()
    await onFree()
  }

  /// Returns whether a success is written.
  private func settle(_ id: RunTable.ID, _ ledger: RunLedger, _ outcome: RunOutcome) async -> Bool {
    var outcome = outcome
    var extraDelay = Duration.zero
    // A short run may end before it is sampled.
    observe(id, ledger, now: .now)
    switch outcome {
    case .failed(var failure):
      extraDelay = await judge(&failure, of: id, ledger)
      outcome = .failed(failure)
    case .succeeded: table.succeeded(id, at: ledger.place.server, now: .now)
    case .stopped: break
    }
    let stop = ledger.isLost ? .abandoned : table.stopReason(of: id)
    let decision = planner.settlement(of: end(of: ledger, outcome, stop, extraDelay))
    guard let decision else {
      if works[id]?.isHandedBack != true { count(id, .lost) }
      return false
    }
    switch outcome {
    case .failed(let failure): note(failure, ledger)
    // The last report may have been before the last bytes.
    case .succeeded(_, let bytes, _): ledger.progress(bytesDone: bytes, bytesTotal: bytes)
    case .stopped: break
    }
    let written = await settle(ledger, as: decision)
    count(id, written.map { .init($0, stop) } ?? .lost, written?.failure)
    return written?.isSuccess ?? false
  }

  /// A failure that is the server's is none of the task's. Returns for how long that cannot be known: tasks that were tried
  /// again before would use up their attempts.
  private func judge(_ failure: inout TaskFailure, of id: RunTable.ID, _ ledger: RunLedger) async -> Duration {
    failure = table.judge(failure, of: id, now: .now)
    let suspicion = table.suspect(
      failure, of: id, at: ledger.place.server, newBytes: ledger.newBytes, now: .now)
    guard let suspicion else { return .zero }
    if (try? await store.note(suspicion, under: ledger.lease)) == true {
      failure.class = .wait
      return .zero
    }
    return suspicion.isOut ? max(.zero, ServerFailure.patience - suspicion.failing) : .zero
  }

  private func end(
    of ledger: RunLedger, _ outcome: RunOutcome, _ stop: StopReason?, _ extraDelay: Duration = .zero
  ) -> SettlementPlanner.Run {
    let claim = ledger.claim
    return .init(
      attempt: claim.attempt, epoch: claim.epoch, retry: retry(of: claim), outcome: outcome, stop: stop,
      newBytes: ledger.newBytes, size: ledger.bytesTotal, generation: ledger.recordedGeneration,
      extraDelay: extraDelay)
  }

  /// Counts the end of a run, once: a run that was handed back returns later.
  private func count(_ id: RunTable.ID, _ outcome: WorkerMetrics.Outcome, _ failure: TaskFailure? = nil) {
    guard let work = works[id], !work.isCounted else { return }
    works[id]?.isCounted = true
    let kind = work.ledger.claim.spec.kind
    let time = work.ledger.begunAt.duration(to: .now)
    metrics.ended(kind, outcome, after: time)
    tracer?.ran(work.ledger, outcome, failure, for: time)
    if let failure, outcome != .lost { metrics.failed(kind, failure) }
  }

  /// Not before its end is counted.
  private func forget(_ id: RunTable.ID) {
    guard let work = works[id], work.hasReturned, work.isCounted || !work.isHandedBack else { return }
    works[id] = nil
  }

  /// Writes the end of a run until it is written, or the lease is lost. Returns what is written.
  private func settle(_ ledger: RunLedger, as outcome: Settlement.Outcome) async -> Settlement.Outcome? {
    let claim = ledger.claim
    var settlement = Settlement(taskID: claim.spec.id, epoch: claim.epoch, outcome: outcome)
    while true {
      do {
        guard try await store.settle(settlement, under: ledger.lease) else {
          log.log(.notice, "the task had another owner when it was settled", fields: fields(ledger))
          return nil
        }
        return settlement.outcome
      } catch is OwnershipLost {
        return nil
      } catch {
        // If nothing were written, the task would run here for ever. So it is handed back with the error.
        let failure = TaskFailure(
          code: .settlementRefused, message: "the store refused the end of the run: \(error)", class: .wait)
        settlement.outcome = .released(reason: failure, delay: .seconds(60))
        log.log(.error, "the end of a run cannot be written", fields: fields(ledger) + [("error", .text("\(error)"))])
        // The run may be canceled.
        try? await loop.uninterrupted { [loop] in try await loop.sleep(for: .seconds(1)) }
      }
    }
  }

  /// The task's own policy; the kind's policy replaces values that the task leaves at the standard.
  private func retry(of claim: Claim) -> RetryPolicy {
    handlers[claim.spec.kind]?.policy.retry(of: claim.spec) ?? claim.spec.retry
  }

  // MARK: Stopping

  /// Follows the intents of a renewal. An intent for a task that is already stopping changes nothing.
  package func follow(_ intents: [UniqueID: Intent]) {
    for (task, intent) in intents { perform(table.stop(task, .intent(intent), now: .now)) }
  }

  /// Stops every run, and returns when all are settled.
  package func drain() async {
    perform(table.stopAll(.drain, now: .now))
    await withCheckedContinuation { if table.isIdle { $0.resume() } else { idleWaiters.append($0) } }
  }

  /// Detaches every run of a lost lease. The caller has closed its fence.
  package func leaseLost(_ lease: Lease) {
    perform(table.leaseLost(lease.worker))
    noteIdle()
  }

  /// Hands back the tasks of the runs that use `root`, because this storage does not answer and they may never return.
  package func rootHangs(_ root: String, _ failure: TaskFailure) {
    perform(table.rootHangs(root, failure), telling: "a storage does not answer: a task that uses it is handed back")
  }

  /// `handBack` is the log message for a task that is handed back.
  private func perform(
    _ actions: [RunTable.Action], telling handBack: String = "a run does not stop: its task is handed back"
  ) {
    for action in actions {
      switch action {
      // The end of such a run is written.
      case .stop(let id, _) where works[id]?.isCounted == true: break
      case .stop(let id, let reason):
        if reason == .stalled { tell(.warning, "a run makes no progress and is stopped", id) }
        if reason == .crowded { tell(.info, "its host serves others first: the task is handed back", id) }
        if reason == .timedOut { tell(.warning, "a run takes longer than its kind allows and is stopped", id) }
        works[id]?.ledger.tellToStop(reason)
        works[id]?.task.cancel()
      case .detach(let id):
        works[id]?.ledger.disown()
        works[id]?.task.cancel()
      case .handBack(let id, _, _) where works[id]?.isCounted == true: loop.task { await self.handedBack(id) }
      case .handBack(let id, let outcome, let reason):
        tell(.error, handBack, id)
        guard let ledger = works[id]?.ledger else { continue }
        works[id]?.isHandedBack = true
        loop.task { await self.handBack(id, ledger, outcome, reason) }
      }
    }
  }

  private func handBack(_ id: RunTable.ID, _ ledger: RunLedger, _ outcome: RunOutcome, _ reason: StopReason?) async {
    let decision = planner.settlement(of: end(of: ledger, outcome, reason)) ?? .released(reason: nil, delay: .zero)
    let written = await settle(ledger, as: decision)
    count(id, written.map { .init($0, reason) } ?? .lost, written?.failure)
    forget(id)
    await handedBack(id)
  }

  private func handedBack(_ id: RunTable.ID) async {
    table.handedBack(id)
    noteIdle()
    await onFree()
  }

  private func noteIdle() {
    guard table.isIdle else { return }
    for waiter in idleWaiters { waiter.resume() }
    idleWaiters = []
  }

  // MARK: Watching

  /// Reads the progress of every run, stops runs that make none, and returns the samples to publish.
  package func sample(now: BootInstant) -> [ProgressSample] {
    for (id, work) in works { observe(id, work.ledger, now: now) }
    let samples = table.takePublished()
    perform(table.look(now: now))
    return samples
  }

  private func observe(_ id: RunTable.ID, _ ledger: RunLedger, now: BootInstant) {
    table.observe(
      id, bytesDone: ledger.bytesDone, bytesTotal: ledger.bytesTotal, recorded: ledger.recordedBytes,
      pulses: ledger.pulseCount, at: ledger.place, now: now)
  }

  /// The samples that the next renewal of `lease` records.
  package func renewalSamples(of lease: Lease, atOnce: Int, now: BootInstant) -> [ProgressSample] {
    table.takeRenewed(of: lease.worker, atOnce: atOnce, now: now)
  }

  /// How many tasks of a host are of use at once, for hosts where tasks of `lease` stand in line or are refused.
  package func hostLimits(of lease: Lease, now: BootInstant) -> [String: HostLimit] {
    table.hostLimits(of: lease.worker, now: now)
  }

  /// When servers have served runs last, if the store does not know it yet.
  package func served(now: BootInstant) -> [TaskServer: BootInstant] {
    table.served(now: now)
  }

  /// The store knows when these have served.
  package func told(_ servers: [TaskServer: BootInstant]) {
    table.told(servers)
  }

  /// The store gives out no more tasks of these hosts: hands back those that stand in line without need.
  package func relieve(_ hosts: Set<String>, now: BootInstant) {
    perform(table.relieve(hosts, now: now))
  }

  // MARK: Logging

  /// The worker ends although these runs have not: tells which they are.
  package func tellOfRest() {
    for (_, work) in works.sorted(by: { $0.key < $1.key }) where !work.isCounted {
      log.log(
        .error, "a run has not ended: its task runs elsewhere once the lease of this worker is over",
        fields: fields(work.ledger) + [("kind", .text(work.ledger.claim.spec.kind.rawValue))])
    }
  }

  private func tell(_ level: LogLevel, _ message: String, _ id: RunTable.ID) {
    guard let ledger = works[id]?.ledger else { return }
    log.log(level, message, fields: fields(ledger))
  }

  private func note(_ failure: TaskFailure, _ ledger: RunLedger) {
    log.log(
      .info, "a run failed",
      fields: fields(ledger) + [
        ("code", .text(failure.code.rawValue)), ("error", .text(failure.message)),
        ("class", .text(failure.class.rawValue)),
      ])
  }

  private nonisolated func fields(_ ledger: RunLedger) -> [(String, LogValue)] {
    let claim = ledger.claim
    return [("task", .of(claim.spec.id)), ("epoch", .integer(claim.epoch)), ("attempt", .integer(claim.attempt))]
      + (ledger.trace?.logFields ?? [])
  }
}

extension Settlement.Outcome {
  fileprivate var isSuccess: Bool { if case .succeeded = self { true } else { false } }

  /// Why the run did not succeed; nil if nothing failed.
  fileprivate var failure: TaskFailure? {
    switch self {
    case .succeeded, .released(reason: nil, delay: _): nil
    case .failed(let failure, _), .progressed(let failure, _), .released(let failure?, _): failure
    }
  }
}

extension WorkerMetrics.Outcome {
  fileprivate init(_ settlement: Settlement.Outcome, _ stop: StopReason?) {
    self =
      switch (settlement, stop) {
      case (.succeeded, _): .succeeded
      // Whatever failed, the task is canceled or paused.
      case (_, .intent(.cancel)): .canceled
      case (_, .intent(.pause)), (.released, _): .handedBack
      case (.failed(_, retryIn: nil), _): .failed
      case (.failed, _), (.progressed, _): .retried
      }
  }
}
