import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore

/// Keeps this worker's lease. ``LeaseMachine`` makes the decisions.
package actor LeaseKeeper {
  /// Describes this process to the store. The boot UUID is new for every registration.
  package typealias Describe = @Sendable (_ boot: UniqueID, _ volumes: [String: UniqueID]) -> WorkerRegistration

  private let loop: EventLoop
  private let store: any LeaseStore
  private let runner: Runner
  private let watch: VolumeWatch
  private let commands: any CommandSource
  private let fleet: FleetSize
  private let topicPrefix: String
  private let describe: Describe
  private let metrics: WorkerMetrics
  private let log: Logger
  private let onLease: @Sendable () async -> Void
  private let onLoss: @Sendable () async -> Void
  private let wakeup: Wakeup
  private var machine: LeaseMachine
  private var outage = Outage()
  /// The boot UUID of the present registration, or of the one under way.
  private var boot = UniqueID(milliseconds: Clocks.realtimeMilliseconds())
  /// Finished when the first lease begins.
  private let beginning = AsyncStream.makeStream(of: Never.self)
  /// Finished when a renewal says that the worker shall end.
  private let draining = AsyncStream.makeStream(of: Never.self)
  private var refusal: StoreError?
  /// The volumes that were last announced to the store.
  private var announced: [String: UniqueID] = [:]
  private var readsCommands = true
  /// The space of the storages as the store was told it last, and when it is told again.
  private var measured: [String: StorageSpace] = [:]
  private var measuresAt = BootInstant.now
  private static let measuresEvery = Duration.seconds(30)
  /// Whether the store knows limits of hosts from this worker, and when it is told again.
  private var hasToldLimits = false
  private var tellsAt = BootInstant.now
  private static let tellsEvery = Duration.seconds(2)
  /// About so many tasks' progress is recorded with a renewal, in a fleet of few workers: each costs PostgreSQL 30 µs.
  private static let recordedAtOnce = 48
  /// However many workers there are, the progress of each task has its turn before long.
  private static let leastRecordedAtOnce = 12

  private var clock = ClockWatch()

  /// The lease for new claims; nil if there is none.
  package private(set) var lease: Lease?
  /// Who had the last lease, if runs were lost with it and no new one has begun.
  private var abandoned: WorkerID?
  /// Whether the store does not know yet that runs were lost with the last lease.
  package var hasAbandoned: Bool { abandoned != nil }

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// Calls `onLease` when a lease begins, or allows other tasks than before, and `onLoss` when it is lost.
  package init(
    loop: EventLoop, store: any LeaseStore, runner: Runner, watch: VolumeWatch, commands: any CommandSource,
    fleet: FleetSize, timing: LeaseMachine.Timing, topicPrefix: String, metrics: WorkerMetrics, log: Logger,
    describe: @escaping Describe,
    onLease: @escaping @Sendable () async -> Void, onLoss: @escaping @Sendable () async -> Void
  ) {
    self.loop = loop
    self.store = store
    self.runner = runner
    self.watch = watch
    self.commands = commands
    self.fleet = fleet
    self.topicPrefix = topicPrefix
    self.describe = describe
    self.metrics = metrics
    self.log = log
    self.onLease = onLease
    self.onLoss = onLoss
    wakeup = Wakeup(loop: loop)
    machine = LeaseMachine(timing: timing, seed: .random(in: 0 ... .max))
  }

  /// Runs until its task is canceled, or until the store proves to belong to another fleet. Then it returns the error.
  package func run() async -> StoreError? {
    await perform(machine.start())
    while !Task.isCancelled {
      await wakeup.sleep(until: machine.nextTick)
      if let refusal { return refusal }
      await perform(machine.tick(now: .now))
    }
    return nil
  }

  /// Returns when the first lease has begun, or the task is canceled. Until then nothing may be written to the store,
  /// because it may belong to another fleet.
  package func begun() async {
    for await _ in beginning.stream {}
  }

  /// Returns when somebody has asked the store for the end of this worker, or the task is canceled.
  package func askedToDrain() async {
    for await _ in draining.stream {}
  }

  /// Renews at once, because an intent for a running task exists or other volumes are mounted.
  package func renewNow() async {
    await performAndWake(machine.renewNow(now: .now))
  }

  /// Gives up the lease; also one that was lost, so that others need not wait for its end. Every run must have ended
  /// before.
  package func retire() async {
    machine.end()
    guard let worker = lease?.worker ?? abandoned else { return }
    lease?.fence.close()
    lease = nil
    do {
      try await store.retire(worker)
      abandoned = nil
    } catch {
      log.notice("the lease could not be given up, and ends by itself", ["error": .text("\(error)")])
    }
  }

  private func perform(_ actions: [LeaseMachine.Action]) async {
    for action in actions {
      switch action {
      case .register: loop.task { await self.register() }
      case .renew(let worker): loop.task { await self.renew(worker) }
      case .begin(let worker, let fence): begin(worker, fence)
      case .extend(let worker, let fence):
        if lease?.fence.extend(until: fence) == false { await perform(machine.fencePassed(worker, now: .now)) }
      case .abandon(let worker): await abandon(worker)
      case .retreat: retreat()
      }
    }
  }

  /// Performs the actions that follow from an answer, and wakes the loop, because the time of the next tick has
  /// changed.
  private func performAndWake(_ actions: [LeaseMachine.Action]) async {
    await perform(actions)
    await wakeup.call()
  }

  // MARK: Actions

  private func register() async {
    boot = UniqueID(milliseconds: Clocks.realtimeMilliseconds())
    let volumes = await watch.volumes
    do {
      try await store.bind(topicPrefix: topicPrefix)
      let sentAt = BootInstant.now
      let worker = try await store.register(describe(boot, volumes))
      announced = volumes
      (measured, hasToldLimits) = ([:], false)
      recovered()
      await performAndWake(machine.registered(worker, sentAt: sentAt, now: .now))
      if lease?.worker == worker { await onLease() }
      await compareClock()
    } catch let error as StoreError where error.isFinal {
      refusal = error
      machine.end()
      await wakeup.call()
    } catch {
      report("the worker cannot register with the store, and tries again", error)
      await performAndWake(machine.registrationFailed(now: .now))
    }
  }

  private func begin(_ worker: WorkerID, _ fence: BootInstant) {
    lease = Lease(worker: worker, boot: boot, fence: Fence(until: fence))
    abandoned = nil
    beginning.continuation.finish()
    if readsCommands { commands.join(as: worker) } else { leaveCommands() }
    log.info("the worker is registered", ["worker": .of(boot), "number": .integer(worker.rawValue)])
  }

  private func renew(_ worker: WorkerID) async {
    guard let lease, lease.worker == worker else { return }
    do {
      let volumes = await watch.volumes
      let isRemounted = volumes != announced
      if isRemounted {
        try await store.announce(worker, volumes: volumes)
        announced = volumes
        // The store has forgotten what it was told of the former ones.
        (measured, measuresAt) = ([:], .now)
      }
      let sentAt = BootInstant.now
      let samples = await runner.renewalSamples(
        of: lease, atOnce: max(Self.leastRecordedAtOnce, fleet.share(Self.recordedAtOnce, of: 5)), now: sentAt)
      let renewal = try await store.renew(worker, samples: samples)
      recovered()
      await performAndWake(machine.renewed(worker, sentAt: sentAt, isAlive: renewal.isAlive, now: .now))
      guard renewal.isAlive else { return }
      // Otherwise it is this worker itself that has told so.
      if renewal.isDraining, readsCommands { draining.continuation.finish() }
      await runner.follow(renewal.intents)
      await commands.renewed(worker)
      if isRemounted { await onLease() }
      await measure(worker)
      await tellHostLimits(lease)
      await compareClock()
    } catch {
      report("the lease cannot be renewed", error)
      await performAndWake(machine.renewalFailed(worker, now: .now))
    }
  }

  /// Not with every renewal: free space changes all the time, and only people look at it.
  private func measure(_ worker: WorkerID) async {
    let spaces = await watch.rooms
    guard spaces != measured, BootInstant.now >= measuresAt else { return }
    measuresAt = .now + Self.measuresEvery
    // If it fails, a later measurement is told.
    guard (try? await store.measure(worker, spaces: spaces)) != nil else { return }
    measured = spaces
  }

  /// So that tasks of a host that serves few do not take the places of others. What fails is repeated with the next renewal.
  private func tellHostLimits(_ lease: Lease) async {
    guard BootInstant.now >= tellsAt else { return }
    tellsAt = .now + Self.tellsEvery
    let limits = await runner.hostLimits(of: lease, now: .now)
    if !limits.isEmpty || hasToldLimits {
      guard (try? await store.tell(lease.worker, hostLimits: limits)) != nil else { return }
      hasToldLimits = !limits.isEmpty
    }
    let served = await runner.served(now: .now)
    let ages = served.mapValues { $0.duration(to: .now) }
    if !served.isEmpty, (try? await store.endOutages(of: ages)) != nil { await runner.told(served) }
    guard await runner.running > 0, let limited = try? await store.limitedHosts() else { return }
    await runner.relieve(limited, now: .now)
  }

  private func compareClock() async {
    let askedAt = BootInstant.now
    guard clock.isDue(at: askedAt), let theirs = try? await store.time() else { return }
    let own = Timestamp(microseconds: Clocks.realtimeMicroseconds())
    let report = clock.measured(own: own, theirs: theirs, after: .now - askedAt)
    metrics.clockDiffers(by: clock.offset)
    switch report {
    case .wrong(let offset):
      log.warning(
        "the clock of this machine differs from the database's: set both with NTP",
        ["seconds_ahead": .double(offset.seconds)])
    case .right: log.notice("the clock of this machine agrees with the database's again")
    case nil: break
    }
  }

  private func abandon(_ worker: WorkerID) async {
    guard let lost = lease, lost.worker == worker else { return }
    metrics.leaseLost(lost.fence.isOpen ? .revoked : .expired)
    lost.fence.close()
    lease = nil
    let runs = await runner.running
    abandoned = runs > 0 ? worker : nil
    log.error(
      "the lease is lost: every run is stopped, and the worker registers again",
      ["worker": .of(lost.boot), "runs": .integer(runs)])
    await runner.leaseLost(lost)
    await onLoss()
  }

  /// This worker reads no more commands, also under a later lease: others read its share.
  func leaveCommands() {
    readsCommands = false
    commands.leave()
    guard let worker = lease?.worker else { return }
    // The end does not wait for it: without it, the others deal commands out to this worker until its lease has ended.
    loop.task { [store] in try? await store.leave(worker) }
  }

  private func retreat() {
    log.warning("the worker has no lease: it leaves commands to other workers until the store can be reached again")
    commands.leave()
  }

  // MARK: Logging

  private func report(_ message: String, _ error: any Error) {
    log.log(outage.failed(error), message, ["error": .text("\(error)")])
  }

  private func recovered() {
    if outage.recovered() { log.notice("the store can be reached again") }
  }
}
