import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore

/// The running tasks of this worker: starts a run for every claim, tells runs to stop, and settles what they end with.
package actor Runner {
  private struct Run {
    let ledger: RunLedger
    var meter: ProgressMeter
    let task: Task<Void, any Error>
    var stop: (reason: StopReason, at: BootInstant)?

    var claim: Claim { ledger.claim }
  }

  private let loop: EventLoop
  private let concurrency: Int
  private let handlers: [TaskKind: any TaskHandler]
  private let store: StoreBatcher
  private let watchdog: Watchdog
  private let log: Logger
  /// Called when a run has ended.
  private let onFree: @Sendable () async -> Void
  private var planner = SettlementPlanner(seed: .random(in: 0 ... .max))
  private var runs: [UniqueID: Run] = [:]
  /// Runs of lost leases that have not returned yet: they still count as running.
  private var leftovers = 0
  /// Runs on roots that do not answer. They do not count: a root that hangs holds up no task of another.
  private var hanging: Set<ObjectIdentifier> = []
  /// Runs that were let go and whose ends are not written yet.
  private var lettingGo = 0
  private var idleWaiters: [CheckedContinuation<Void, Never>] = []

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  package init(
    loop: EventLoop, concurrency: Int, handlers: [any TaskHandler], store: StoreBatcher, watchdog: Watchdog,
    log: Logger,
    onFree: @escaping @Sendable () async -> Void
  ) {
    self.loop = loop
    self.concurrency = concurrency
    self.handlers = Dictionary(handlers.map { ($0.kind, $0) }) { _, last in last }
    self.store = store
    self.watchdog = watchdog
    self.log = log
    self.onFree = onFree
  }

  package var free: Int { max(0, concurrency - runs.count - leftovers) }

  package var running: Int { runs.count }

  /// Whether runs that were given up have not returned: what they wait for may never come.
  package var hasLeftovers: Bool { leftovers > 0 || !hanging.isEmpty }

  /// Whether the task runs here.
  package func isRunning(_ id: UniqueID) -> Bool { runs[id] != nil }

  // MARK: Starting and ending

  package func start(_ claims: [Claim], under lease: Lease) {
    guard lease.fence.isOpen else { return }
    let now = BootInstant.now
    for claim in claims {
      let ledger = RunLedger(claim: claim, lease: lease, store: store)
      let meter = ProgressMeter(bytesDone: ledger.bytesDone, bytesTotal: ledger.bytesTotal, now: now)
      // Released a moment ago and claimed again before the release was answered: the former run is still to return.
      if runs[claim.spec.id] != nil { leftovers += 1 }
      runs[claim.spec.id] = Run(ledger: ledger, meter: meter, task: loop.task { await self.run(ledger) })
    }
  }

  private func run(_ ledger: RunLedger) async {
    let kind = ledger.claim.spec.kind
    let outcome: RunOutcome
    if let handler = handlers[kind] {
      outcome = await handler.run(ledger.claim, ledger: ledger)
    } else {
      let failure = TaskFailure(
        code: "no_handler", message: "The worker does not carry out tasks of kind \(kind.rawValue).", class: .wait)
      outcome = .failed(failure)
    }
    await settle(ledger, outcome)
    await end(ledger)
  }

  private func settle(_ ledger: RunLedger, _ outcome: RunOutcome) async {
    let claim = ledger.claim
    // The table may hold a later run of the same task: this one was let go then, and is not to be settled.
    let run = own(ledger)
    let stop = run == nil || ledger.isLost ? .abandoned : run?.stop?.reason
    let decision = planner.settlement(
      of: .init(
        attempt: claim.attempt, epoch: claim.epoch, retry: claim.spec.retry, outcome: outcome, stop: stop,
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
          code: "settlement_refused", message: "The store refused the end of the run: \(error)", class: .wait)
        settlement.outcome = .released(reason: failure, delay: .seconds(60))
        log.error("a run's end cannot be written", ["task": .of(claim.spec.id), "error": .text("\(error)")])
        try? await loop.sleep(for: .seconds(1))
      }
    }
  }

  private func end(_ ledger: RunLedger) async {
    if own(ledger) != nil {
      runs[ledger.claim.spec.id] = nil
    } else if hanging.remove(ObjectIdentifier(ledger)) == nil {
      leftovers -= 1
    }
    noteIdle()
    await onFree()
  }

  private func own(_ ledger: RunLedger) -> Run? {
    guard let run = runs[ledger.claim.spec.id], run.ledger === ledger else { return nil }
    return run
  }

  // MARK: Stopping

  /// Follows the intents of a renewal; those of tasks that stop already change nothing.
  package func follow(_ intents: [UniqueID: Intent]) {
    for (task, intent) in intents { stop(task, .intent(intent)) }
  }

  private func stop(_ id: UniqueID, _ reason: StopReason) {
    guard runs[id] != nil, runs[id]?.stop == nil else { return }
    runs[id]?.stop = (reason, .now)
    runs[id]?.task.cancel()
  }

  /// Tells every run to stop and returns when all are settled.
  package func drain() async {
    for id in runs.keys { stop(id, .drain) }
    guard !isIdle else { return }
    await withCheckedContinuation { idleWaiters.append($0) }
  }

  private var isIdle: Bool { runs.isEmpty && lettingGo == 0 }

  private func noteIdle() {
    guard isIdle else { return }
    for waiter in idleWaiters { waiter.resume() }
    idleWaiters = []
  }

  /// The lease is lost: lets every run of it go. Its fence is closed before.
  package func abandon(_ lease: Lease) {
    for (id, run) in runs where run.ledger.lease.worker == lease.worker { detach(id, run) }
    noteIdle()
  }

  private func detach(_ id: UniqueID, _ run: Run) {
    run.ledger.disown()
    run.task.cancel()
    runs[id] = nil
    leftovers += 1
  }

  // MARK: Watching

  /// Reads the progress of every run, acts on those that stand still, and returns what is to be published.
  package func sample(now: BootInstant) -> [ProgressSample] {
    var samples: [ProgressSample] = []
    for (id, var run) in runs {
      run.meter.observe(
        bytesDone: run.ledger.bytesDone, bytesTotal: run.ledger.bytesTotal, pulses: run.ledger.pulseCount, now: now)
      if let reading = run.meter.takePublished() { samples.append(ProgressSample(run.claim, reading)) }
      runs[id]?.meter = run.meter
      switch watchdog.verdict(lastProgress: run.meter.lastProgress, toldToStop: run.stop?.at, now: now) {
      case .fine: break
      case .stop:
        log.warning("a run stands still: it is stopped", fields(run.claim))
        stop(id, .stalled)
      case .detach:
        log.error("a run does not stop: it is let go", fields(run.claim))
        letGo(id, run, .stopped)
      }
    }
    return samples
  }

  /// What the next renewal tells the store about the runs of `lease`.
  package func renewalSamples(of lease: Lease, now: BootInstant) -> [ProgressSample] {
    var samples: [ProgressSample] = []
    for (id, var run) in runs where run.ledger.lease.worker == lease.worker {
      guard let reading = run.meter.takeRenewed(now: now) else { continue }
      runs[id]?.meter = run.meter
      samples.append(ProgressSample(run.claim, reading))
    }
    return samples
  }

  /// The storage `root` does not answer: hands the tasks of its runs back, which may never return.
  package func letGo(root: String, _ failure: TaskFailure) {
    for (id, run) in runs where LaneKey(run.claim.spec).storages.contains(root) {
      log.error("a run is let go: its storage does not answer", fields(run.claim))
      letGo(id, run, .failed(failure))
      // As many as may run at once: whatever comes and goes, there is a limit.
      guard hanging.count < concurrency else { continue }
      hanging.insert(ObjectIdentifier(run.ledger))
      leftovers -= 1
    }
  }

  /// Gives up on a run that does not return, and hands its task back.
  private func letGo(_ id: UniqueID, _ run: Run, _ outcome: RunOutcome) {
    detach(id, run)
    lettingGo += 1
    loop.task { await self.settleGivenUp(run, outcome) }
  }

  private func settleGivenUp(_ run: Run, _ outcome: RunOutcome) async {
    await settle(run.ledger, as: givenUp(run, outcome))
    lettingGo -= 1
    noteIdle()
    await onFree()
  }

  private func givenUp(_ run: Run, _ outcome: RunOutcome) -> Settlement.Outcome {
    planner.settlement(
      of: .init(
        attempt: run.claim.attempt, epoch: run.claim.epoch, retry: run.claim.spec.retry, outcome: outcome,
        stop: run.stop?.reason))
      ?? .released(reason: nil, delay: .zero)
  }

  // MARK: Telling

  private func note(_ failure: TaskFailure, _ claim: Claim) {
    log.info(
      "a run failed",
      [
        "task": .of(claim.spec.id), "epoch": .integer(claim.epoch), "attempt": .integer(claim.attempt),
        "code": .text(failure.code), "error": .text(failure.message), "class": .text(failure.class.rawValue),
      ])
  }

  private nonisolated func fields(_ claim: Claim) -> KeyValuePairs<String, LogValue> {
    ["task": .of(claim.spec.id), "epoch": .integer(claim.epoch), "attempt": .integer(claim.attempt)]
  }
}

extension ProgressSample {
  fileprivate init(_ claim: Claim, _ reading: ProgressMeter.Reading) {
    self.init(
      taskID: claim.spec.id, epoch: claim.epoch, bytesDone: reading.bytesDone, bytesTotal: reading.bytesTotal,
      rate: reading.rate)
  }
}
