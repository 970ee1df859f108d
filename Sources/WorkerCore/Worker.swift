import Glibc
import ReelhaulKafka
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore

/// One worker: its services on one control loop, and their end in order.
///
/// A task passes through them one way: ``Ingester`` → store → ``Claimer`` → ``Runner`` → store → ``Relay``.
/// ``LeaseKeeper`` allows it, for the volumes that ``VolumeWatch`` sees; ``Sweeper`` recovers what other workers lost,
/// ``StagingSweeper`` the space it took; ``SignalListener`` speeds intents up.
package actor Worker {
  private let loop: EventLoop
  private let parts: WorkerParts
  private let log: Logger
  private let runner: Runner
  private let keeper: LeaseKeeper
  private let claimer: Claimer
  private let relay: Relay
  private let ingester: Ingester
  private let sweeper: Sweeper
  private let stagingSweeper: StagingSweeper
  private let watch: VolumeWatch
  private let listener: SignalListener
  private let sampler: ProgressSampler
  private var drain: DrainMachine
  private var drainTimer: LoopTimer?
  private var claiming: [Task<Void, any Error>] = []
  /// The services that apply commands and sweep. Nothing but the relay waits for their ends.
  private var ingesting: [Task<Void, any Error>] = []
  /// The services for whose ends nobody waits.
  private var watching: [Task<Void, any Error>] = []
  private var relaying: [Task<Void, any Error>] = []
  /// The services that look after runs.
  private var attending: [Task<Void, any Error>] = []
  private var keeping: [Task<Void, any Error>] = []
  private var isRefused = false
  private var exitCode: Int32?
  private var waiters: [CheckedContinuation<Int32, Never>] = []

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  package init(loop: EventLoop, settings: WorkerSettings, parts: WorkerParts, log: Logger) {
    let host = Machine.hostName
    let batcher = StoreBatcher(store: parts.store, loop: loop, log: log)
    let hints = WorkerHints()
    let kinds = parts.handlers.map(\.kind)
    let watch = VolumeWatch(loop: loop, storage: parts.storage, log: log)
    runner = Runner(
      loop: loop, concurrency: settings.concurrency, handlers: parts.handlers, store: batcher,
      watchdog: settings.watchdog, log: log, onFree: { await hints.runEnded() })
    keeper = LeaseKeeper(
      loop: loop, store: parts.leases, runner: runner, watch: watch, commands: parts.commands,
      timing: .init(lease: .seconds(settings.leaseSeconds), renewal: settings.renewalInterval),
      topicPrefix: settings.topics.prefix, log: log,
      describe: { boot, volumes in
        WorkerRegistration(
          boot: boot, host: host, pid: getpid(), leaseSeconds: settings.leaseSeconds, kinds: kinds, volumes: volumes,
          labels: settings.labels)
      },
      onLease: { await hints.maybeReady() })
    claimer = Claimer(
      loop: loop, store: parts.store, keeper: keeper, runner: runner,
      planner: ClaimPlanner(concurrency: settings.concurrency, seed: .random(in: 0 ... .max)), log: log,
      onClaimed: { await hints.eventsWritten() })
    relay = Relay(
      loop: loop, store: parts.store, keeper: keeper, sink: parts.rounds, topics: settings.topics,
      source: "/workers/\(host)/\(getpid())", log: log)
    ingester = Ingester(
      loop: loop, source: parts.commands, store: parts.store, sink: parts.messages, topics: settings.topics, log: log,
      onApplied: { await hints.maybeReady() })
    sweeper = Sweeper(
      loop: loop, store: parts.store, interval: settings.sweepInterval, log: log,
      onReady: { await hints.maybeReady() })
    stagingSweeper = StagingSweeper(loop: loop, store: parts.store, storage: parts.storage, log: log)
    listener = SignalListener(loop: loop, source: parts.signals, runner: runner, keeper: keeper, log: log)
    sampler = ProgressSampler(loop: loop, runner: runner, sink: parts.progress, topics: settings.topics)
    drain = DrainMachine(limit: settings.drainLimit)
    self.watch = watch
    self.loop = loop
    self.parts = parts
    self.log = log
    hints.connect(claimer, relay)
  }

  /// Starts the services. Neither Kafka nor PostgreSQL needs to be there yet.
  package func start() {
    keeping = [
      loop.task { [keeper] in
        if let refusal = await keeper.run() { await self.refuse(refusal) }
      }
    ]
    attending = [
      loop.task { [sampler] in await sampler.run() },
      loop.task { [watch, keeper, runner] in
        await watch.run {
          await keeper.renewNow()
        } onHang: { root, failure in
          await runner.rootHangs(root, failure)
        }
      },
    ]
    relaying = [loop.task { [relay] in await relay.run() }]
    claiming = [loop.task { [claimer] in await claimer.run() }]
    // Those that need no lease wait for it, too: until then the store may be another fleet's.
    let begun = loop.task { [keeper] in await keeper.begun() }
    ingesting = [
      loop.task { [ingester] in
        try await begun.value
        await ingester.run()
      },
      loop.task { [sweeper] in
        try await begun.value
        await sweeper.run()
      },
    ]
    watching = [
      begun,
      loop.task { [stagingSweeper] in
        try await begun.value
        await stagingSweeper.run()
      },
      loop.task { [listener] in await listener.run() },
    ]
  }

  /// Begins the drain; the second call ends it at once.
  package func requestStop() {
    handle(.stopRequested)
  }

  /// Begins the drain, unless it is under way.
  package func requestEnd() {
    handle(.stopNeeded)
  }

  /// Waits for the end of the drain: 0, ``DrainMachine/unfinished``, or ``WorkerProcess/misconfigured``.
  package func finished() async -> Int32 {
    if let exitCode { return exitCode }
    return await withCheckedContinuation { waiters.append($0) }
  }

  /// The tasks that run here.
  package var running: Int {
    get async { await runner.running }
  }

  /// Whether runs that were detached have not returned.
  package var hasDetachedRuns: Bool {
    get async { await runner.hasDetached }
  }

  /// The store is another's: no waiting mends that.
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
      for task in ingesting + watching { task.cancel() }
      step(then: .intakeStopped) { await $0.end(of: $0.claiming) }
    case .stopRuns:
      step(then: .runsEnded) { await $0.runner.drain() }
    case .relay(let until):
      step(then: .relayed) { worker in
        await worker.wait(for: worker.ingesting, until: until)
        await worker.relay.drain(until: until)
        await worker.wait(for: worker.relaying, until: until)
      }
    case .flush(let until):
      step(then: .flushed) { worker in
        await worker.end(of: worker.attending)
        for task in worker.relaying { task.cancel() }
        await worker.parts.flush(max(.zero, BootInstant.now.duration(to: until)))
      }
    case .retire:
      step(then: .retired) { worker in
        await worker.keeper.retire()
        await worker.end(of: worker.keeping)
      }
    case .exit(let drained):
      let code = isRefused ? WorkerProcess.misconfigured : drained
      log.notice("the worker ends", ["code": .integer(code)])
      drainTimer?.cancel()
      for task in claiming + ingesting + watching + relaying + attending + keeping { task.cancel() }
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

  private func end(of tasks: [Task<Void, any Error>]) async {
    for task in tasks { task.cancel() }
    for task in tasks { _ = await task.result }
  }

  /// Waits for the tasks' ends, until `deadline` at most.
  private func wait(for tasks: [Task<Void, any Error>], until deadline: BootInstant) async {
    let ended = Wakeup(loop: loop)
    loop.task {
      for task in tasks { _ = await task.result }
      await ended.call()
    }
    await ended.sleep(until: deadline)
  }
}
