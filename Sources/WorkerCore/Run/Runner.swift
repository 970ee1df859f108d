import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore

/// Carries out what ``RunTable`` decides: starts a handler for every claim, cancels handlers, and writes what runs end
/// with.
package actor Runner {
  /// What carries out one run.
  private struct Work {
    let ledger: RunLedger
    let task: Task<Void, any Error>
  }

  private let loop: EventLoop
  private let handlers: HandlerTable
  private let store: StoreBatcher
  private let log: Logger
  /// Called when a run has ended.
  private let onFree: @Sendable () async -> Void
  private var planner = SettlementPlanner(seed: .random(in: 0 ... .max))
  private var table: RunTable
  /// Of every run whose handler has not returned.
  private var works: [RunTable.ID: Work] = [:]
  private var idleWaiters: [CheckedContinuation<Void, Never>] = []

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  package init(
    loop: EventLoop, concurrency: Int, handlers: HandlerTable, store: StoreBatcher, watchdog: Watchdog,
    log: Logger,
    onFree: @escaping @Sendable () async -> Void
  ) {
    self.loop = loop
    self.handlers = handlers
    self.store = store
    self.log = log
    self.onFree = onFree
    table = RunTable(concurrency: concurrency, watchdog: watchdog)
  }

  package var free: Int { table.free }

  package var running: Int { table.running }

  /// Whether runs that were detached have not returned: what they wait for may never come.
  package var hasDetached: Bool { table.hasDetached }

  /// Whether the task runs here.
  package func isRunning(_ id: UniqueID) -> Bool { table.isRunning(id) }

  // MARK: Starting and ending

  package func start(_ claims: [Claim], under lease: Lease) {
    guard lease.fence.isOpen else { return }
    let now = BootInstant.now
    for claim in claims {
      let ledger = RunLedger(claim: claim, lease: lease, store: store)
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
        code: .noHandler, message: "The worker does not carry out tasks of kind \(kind.rawValue).", class: .wait)
      outcome = .failed(failure)
    }
    await settle(id, ledger, outcome)
    table.returned(id)
    works[id] = nil
    noteIdle()
    await onFree()
  }

  private func settle(_ id: RunTable.ID, _ ledger: RunLedger, _ outcome: RunOutcome) async {
    let claim = ledger.claim
    let decision = planner.settlement(
      of: .init(
        attempt: claim.attempt, epoch: claim.epoch, retry: retry(of: claim), outcome: outcome,
        stop: ledger.isLost ? .abandoned : table.stopReason(of: id),
        newBytes: ledger.newBytes, size: ledger.bytesTotal, generation: ledger.recordedGeneration))
    guard let decision else { return }
    if case .failed(let failure) = outcome { note(failure, claim) }
    await settle(ledger, as: decision)
  }

  /// Writes the end of a run until it is written, or the lease is lost.
  private func settle(_ ledger: RunLedger, as outcome: Settlement.Outcome) async {
    let claim = ledger.claim
    var settlement = Settlement(taskID: claim.spec.id, epoch: claim.epoch, outcome: outcome)
    while true {
      do {
        if try await !store.settle(settlement, under: ledger.lease) {
          log.notice("the task was another's when it was settled", fields(claim))
        }
        return
      } catch is OwnershipLost {
        return
      } catch {
        // Without its row the task would run here for ever: hand it back with what stood in the way.
        let failure = TaskFailure(
          code: .settlementRefused, message: "The store refused the end of the run: \(error)", class: .wait)
        settlement.outcome = .released(reason: failure, delay: .seconds(60))
        log.error("a run's end cannot be written", ["task": .of(claim.spec.id), "error": .text("\(error)")])
        try? await loop.sleep(for: .seconds(1))
      }
    }
  }

  /// The task's own policy; what the task leaves at its standard is the kind's.
  private func retry(of claim: Claim) -> RetryPolicy {
    handlers[claim.spec.kind]?.policy.retry(of: claim.spec) ?? claim.spec.retry
  }

  // MARK: Stopping

  /// Follows the intents of a renewal; those of tasks that stop already change nothing.
  package func follow(_ intents: [UniqueID: Intent]) {
    for (task, intent) in intents { perform(table.stop(task, .intent(intent), now: .now)) }
  }

  /// Tells every run to stop and returns when all are settled.
  package func drain() async {
    perform(table.stopAll(.drain, now: .now))
    guard !table.isIdle else { return }
    await withCheckedContinuation { idleWaiters.append($0) }
  }

  /// Detaches every run of a lease that is lost. Its fence is closed before.
  package func leaseLost(_ lease: Lease) {
    perform(table.leaseLost(lease.worker))
    noteIdle()
  }

  /// The storage `root` does not answer: hands the tasks of its runs back, which may never return.
  package func rootHangs(_ root: String, _ failure: TaskFailure) {
    perform(table.rootHangs(root, failure), telling: "a storage does not answer: a task that uses it is handed back")
  }

  /// `handBack` is what the log says of a task that is handed back.
  private func perform(
    _ actions: [RunTable.Action], telling handBack: String = "a run does not stop: its task is handed back"
  ) {
    for action in actions {
      switch action {
      case .stop(let id, let reason):
        if reason == .stalled { tell(.warning, "a run stands still: it is stopped", id) }
        if reason == .timedOut { tell(.warning, "a run takes longer than its kind may: it is stopped", id) }
        works[id]?.ledger.tellToStop(reason)
        works[id]?.task.cancel()
      case .detach(let id):
        works[id]?.ledger.disown()
        works[id]?.task.cancel()
      case .handBack(let id, let outcome, let reason):
        tell(.error, handBack, id)
        guard let ledger = works[id]?.ledger else { continue }
        loop.task { await self.handBack(id, ledger, outcome, reason) }
      }
    }
  }

  private func handBack(_ id: RunTable.ID, _ ledger: RunLedger, _ outcome: RunOutcome, _ reason: StopReason?) async {
    let claim = ledger.claim
    let decision = planner.settlement(
      of: .init(
        attempt: claim.attempt, epoch: claim.epoch, retry: retry(of: claim), outcome: outcome, stop: reason))
    await settle(ledger, as: decision ?? .released(reason: nil, delay: .zero))
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

  /// Reads the progress of every run, acts on those that stand still, and returns what is to be published.
  package func sample(now: BootInstant) -> [ProgressSample] {
    for (id, work) in works {
      let ledger = work.ledger
      table.observe(
        id, bytesDone: ledger.bytesDone, bytesTotal: ledger.bytesTotal, pulses: ledger.pulseCount, now: now)
    }
    let samples = table.takePublished()
    perform(table.look(now: now))
    return samples
  }

  /// What the next renewal tells the store about the runs of `lease`.
  package func renewalSamples(of lease: Lease, now: BootInstant) -> [ProgressSample] {
    table.takeRenewed(of: lease.worker, now: now)
  }

  // MARK: Telling

  private func tell(_ level: LogLevel, _ message: String, _ id: RunTable.ID) {
    guard let claim = table[id]?.claim else { return }
    log.log(level, message, fields(claim))
  }

  private func note(_ failure: TaskFailure, _ claim: Claim) {
    log.info(
      "a run failed",
      [
        "task": .of(claim.spec.id), "epoch": .integer(claim.epoch), "attempt": .integer(claim.attempt),
        "code": .text(failure.code.rawValue), "error": .text(failure.message), "class": .text(failure.class.rawValue),
      ])
  }

  private nonisolated func fields(_ claim: Claim) -> KeyValuePairs<String, LogValue> {
    ["task": .of(claim.spec.id), "epoch": .integer(claim.epoch), "attempt": .integer(claim.attempt)]
  }
}
