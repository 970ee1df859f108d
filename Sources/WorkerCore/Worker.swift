import Glibc
import ReelhaulKafka
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore
import TransferEngine

/// One worker: its services on one control loop, and their end in order.
///
/// Every task goes the same way: ``Ingester`` → store → ``Claimer`` → ``Runner`` → store → ``Relay``.
/// ``LeaseKeeper`` holds the lease under which the worker may run tasks, for the volumes that ``VolumeWatch`` finds.
/// ``Sweeper`` requeues the tasks of lost workers, ``StagingSweeper`` frees the space of files that no task needs,
/// ``Cleaner`` cleans up after removed and canceled tasks, and ``SignalListener`` delivers intents sooner.
package actor Worker {
  private let loop: EventLoop
  private let parts: WorkerParts
  private let log: Logger
  private let metrics: WorkerMetrics
  private let concurrency: Int
  private let runner: Runner
  private let keeper: LeaseKeeper
  private let claimer: Claimer
  private let relay: Relay
  private let ingester: Ingester
  private let sweeper: Sweeper
  private let stagingSweeper: StagingSweeper
  private let cleaner: Cleaner
  private let courier: HookCourier
  private let watch: VolumeWatch
  private let listener: SignalListener
  private let sampler: ProgressSampler
  private var drain: DrainMachine
  private var drainTimer: LoopTimer?
  /// In the order in which they started.
  private var services: [(service: Service, task: Task<Void, any Error>)] = []
  /// Ends with true when the first lease begins, or with false if the drain begins before that.
  private var begun: Task<Bool, any Error>?
  private var isRefused = false
  private var exitCode: Int32?
  private var waiters: [CheckedContinuation<Int32, Never>] = []

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  package init(loop: EventLoop, settings: WorkerSettings, parts: WorkerParts, log: Logger) {
    let host = Machine.hostName
    let metrics = WorkerMetrics(kinds: parts.handlers.kinds)
    let batcher = StoreBatcher(store: parts.store, loop: loop, metrics: metrics, log: log)
    let hints = WorkerHints()
    let fleet = FleetSize()
    let handlers = parts.handlers
    let watch = VolumeWatch(loop: loop, storage: parts.storage, log: log)
    runner = Runner(
      loop: loop, concurrency: settings.concurrency, handlers: parts.handlers, store: batcher,
      watchdog: settings.watchdog, metrics: metrics, tracer: parts.tracer, log: log, onFree: { await hints.runEnded() })
    keeper = LeaseKeeper(
      loop: loop, store: parts.leases, runner: runner, watch: watch, commands: parts.commands, fleet: fleet,
      timing: .init(lease: .seconds(settings.leaseSeconds), renewal: settings.renewalInterval),
      topicPrefix: settings.topics.prefix, metrics: metrics, log: log,
      describe: { boot, volumes in
        WorkerRegistration(
          boot: boot, host: host, pid: getpid(), leaseSeconds: settings.leaseSeconds, kinds: handlers.kinds,
          volumes: volumes, labels: settings.labels, kindLimits: handlers.limits, formerNames: handlers.formerNames,
          version: Build.version)
      },
      onLease: { await hints.maybeReady() }, onLoss: parts.reconnect)
    claimer = Claimer(
      loop: loop, store: parts.store, keeper: keeper, runner: runner,
      planner: ClaimPlanner(concurrency: settings.concurrency, seed: .random(in: 0 ... .max)),
      fleet: fleet, metrics: metrics, log: log,
      onClaimed: { await hints.eventsWritten() })
    relay = Relay(
      loop: loop, store: parts.store, keeper: keeper, sink: parts.rounds, topics: settings.topics,
      source: "/workers/\(host)/\(getpid())", fleet: fleet, metrics: metrics, tracer: parts.tracer, log: log)
    ingester = Ingester(
      loop: loop, source: parts.commands, store: parts.store, sink: parts.messages, topics: settings.topics,
      metrics: metrics, tracer: parts.tracer, log: log,
      onApplied: { await hints.maybeReady() })
    sweeper = Sweeper(
      loop: loop, store: parts.store, interval: settings.sweepInterval, fleet: fleet, log: log,
      onReady: { await hints.maybeReady() })
    stagingSweeper = StagingSweeper(loop: loop, store: parts.store, storage: parts.storage, log: log)
    cleaner = Cleaner(
      loop: loop, store: parts.store, keeper: keeper, handlers: parts.handlers, fleet: fleet, log: log,
      patience: settings.cleanUpLimit)
    courier = HookCourier(
      loop: loop, store: parts.store, keeper: keeper, sender: parts.hooks, fleet: fleet, metrics: metrics,
      log: log)
    listener = SignalListener(loop: loop, source: parts.signals, runner: runner, keeper: keeper, log: log)
    sampler = ProgressSampler(loop: loop, runner: runner, sink: parts.progress, topics: settings.topics)
    drain = DrainMachine(limit: settings.drainLimit)
    self.metrics = metrics
    concurrency = settings.concurrency
    self.watch = watch
    self.loop = loop
    self.parts = parts
    self.log = log
    hints.connect(claimer, relay)
  }

  /// Starts the services. Kafka and PostgreSQL may still be unreachable.
  package func start() {
    let begun = loop.task { [keeper] in
      await keeper.begun()
      return !Task.isCancelled
    }
    self.begun = begun
    services = list().map { service in
      let task = loop.task {
        if service.start == .underLease, try await !begun.value { return }
        await service.run()
      }
      return (service, task)
    }
  }

  /// The services in the order in which they start.
  private func list() -> [Service] {
    [
      Service("lease", stop: .init(canceled: .retire, awaited: .retire) { [keeper] _ in await keeper.retire() }) {
        [keeper] in
        if let refusal = await keeper.run() { await self.refuse(refusal) }
      },
      Service(
        "relay",
        stop: .init(canceled: .flush, awaited: .relay) { [relay] until in
          if let until { await relay.drain(until: until) }
        }
      ) { [relay] in await relay.run() },
      Service("drain", stop: .canceled(in: .stopIntake)) { [keeper] in
        await keeper.askedToDrain()
        if !Task.isCancelled { await self.endAsAsked() }
      },
      Service("volumes", stop: .ended(in: .flush)) { [watch, keeper, runner] in
        await watch.run {
          await keeper.renewNow()
        } onHang: { root, failure in
          await runner.rootHangs(root, failure)
        }
      },
      Service("progress", stop: .ended(in: .flush)) { [sampler] in await sampler.run() },
      Service("claims", stop: .ended(in: .stopIntake)) { [claimer] in await claimer.run() },
      Service("signals", stop: .canceled(in: .stopIntake)) { [listener] in await listener.run() },
      Service("staging", start: .underLease, stop: .canceled(in: .stopIntake)) { [stagingSweeper] in
        await stagingSweeper.run()
      },
      Service("clean-up", start: .underLease, stop: .canceled(in: .stopIntake)) { [cleaner] in await cleaner.run() },
      Service("hooks", start: .underLease, stop: .canceled(in: .stopIntake)) { [courier] in await courier.run() },
      Service("sweep", start: .underLease, stop: .init(canceled: .stopIntake, awaited: .relay)) { [sweeper] in
        await sweeper.run()
      },
      Service("ingest", start: .underLease, stop: .init(canceled: .stopIntake, awaited: .relay)) {
        [ingester, keeper] in
        await ingester.run()
        // While the runs end, others read them.
        await keeper.leaveCommands()
      },
    ]
  }

  /// Begins the drain. A second call ends it at once.
  package func requestStop() {
    handle(.stopRequested)
  }

  /// Begins the drain, unless it is under way.
  package func requestEnd() {
    handle(.stopNeeded)
  }

  /// Waits for the end of the drain and returns the exit code: 0, ``DrainMachine/unfinished``, or
  /// ``WorkerProcess/misconfigured``.
  package func finished() async -> Int32 {
    await withCheckedContinuation { waiter in
      if let exitCode { waiter.resume(returning: exitCode) } else { waiters.append(waiter) }
    }
  }

  /// How many tasks run here.
  package var running: Int {
    get async { await runner.running }
  }

  /// All metrics of this worker, as of now.
  package func metricsSnapshot() async -> MetricsSnapshot {
    var text = MetricsSnapshot()
    metrics.write(to: &text, now: Int64(Clocks.realtimeMilliseconds()))
    text.add(
      "reelhaul_ingest_lag_records", Double(parts.commands.lag),
      help: "Commands in the partitions that this worker reads that are not applied yet.")
    text.add(
      MetricFamily(
        "reelhaul_messages_dropped_total", .counter, labels: ["topic"],
        help: "Messages that Kafka did not take in time, and that nobody needs later."),
      [(["progress"], Double(parts.progress.dropped)), (["signals"], Double(parts.messages.dropped))])
    text.add("reelhaul_worker_concurrency", Double(concurrency), help: "How many tasks may run here at once.")
    text.add("reelhaul_worker_busy", Double(await runner.running), help: "How many tasks run here.")
    let rooms = await watch.rooms.sorted { $0.key < $1.key }
    func storages(_ name: String, _ help: String, _ value: (StorageSpace) -> Int64) {
      text.add(
        MetricFamily(name, .gauge, labels: ["storage"], help: help), rooms.map { ([$0.key], Double(value($0.value))) })
    }
    storages("reelhaul_storage_free_bytes", "Bytes that a storage that is usable has free.", \.free)
    storages(
      "reelhaul_storage_promised_bytes",
      "Bytes of them that files under way will need; 0 where the file system sets them aside at once.", \.promised)
    parts.transfers?.write(to: &text)
    text.addBuild(schema: Schema.version)
    text.addProcess()
    return text
  }

  /// Whether runs that were detached, or clean-ups, have not returned.
  package var hasHangingCalls: Bool {
    get async { await runner.hasDetached ? true : await cleaner.isBusy }
  }

  private func endAsAsked() {
    log.notice("somebody has asked this worker to drain")
    requestEnd()
  }

  /// Ends the worker, because the store belongs to another fleet or program and waiting does not help.
  private func refuse(_ refusal: StoreError) {
    log.error("the worker ends: \(refusal)", ["advice": .text(refusal.advice ?? "")])
    isRefused = true
    requestEnd()
  }

  // MARK: Draining

  private func handle(_ event: DrainMachine.Event) {
    for action in drain.handle(event, now: .now) { perform(action) }
  }

  private func perform(_ action: DrainMachine.Action) {
    switch action {
    case .stopIntake:
      log.notice("draining: no new work")
      let left = drain.deadline.map { BootInstant.now.duration(to: $0) } ?? .zero
      drainTimer = loop.timer(after: left) { [weak self] in self?.assumeIsolated { $0.handle(.tick) } }
      begun?.cancel()
      step(then: .intakeStopped) { await $0.stop(.stopIntake) }
    case .stopRuns:
      step(then: .runsEnded) { await $0.runner.drain() }
    case .relay(let until):
      step(then: .relayed) { await $0.stop(.relay, until: until) }
    case .flush(let until):
      step(then: .flushed) { worker in
        await worker.stop(.flush)
        await worker.parts.flush(max(.zero, BootInstant.now.duration(to: until)))
      }
    case .retire:
      loop.task {
        await self.stop(.retire)
        await self.handle(self.keeper.hasAbandoned ? .abandoned : .retired)
      }
    case .exit(let drained):
      let code = isRefused ? WorkerProcess.misconfigured : drained
      if drained == DrainMachine.unfinished {
        log.error("the drain is not complete: its limit or a second signal cut it short, or the lease was lost before")
        // On the same loop. A message to it could come after the end of the log.
        runner.assumeIsolated { $0.tellOfRest() }
      }
      log.notice("the worker ends", ["code": .integer(code)])
      drainTimer?.cancel()
      for (_, task) in services { task.cancel() }
      exitCode = code
      for waiter in waiters { waiter.resume(returning: code) }
      waiters = []
    }
  }

  private func step(then event: DrainMachine.Event, _ body: @escaping @Sendable (isolated Worker) async -> Void) {
    loop.task {
      await body(self)
      await self.handle(event)
    }
  }

  /// Ends the services that end in `step`, in the reverse order of their start. Waits until `deadline` at most, if
  /// there is one.
  private func stop(_ step: Service.Step, until deadline: BootInstant? = nil) async {
    for (service, task) in services.reversed() {
      let isAwaited = service.stop.awaited == step
      if isAwaited { await service.stop.finish?(deadline) }
      if service.stop.canceled == step { task.cancel() }
      if isAwaited, await loop.result(of: task, by: deadline) == nil {
        log.debug("the drain continues although a service has not ended", ["service": .text(service.name)])
      }
    }
  }
}
