import MemoryTaskStore
import ReelhaulSystem
import TaskCore
import TaskStore
import Testing
import TransferEngine
import WorkerCore

/// A worker process: the decision types of the real one, with a shell that runs in virtual time and may be killed or
/// stopped at any moment.
@MainActor final class SimulatedWorker {
  struct Run {
    var claim: Claim
    var worker: WorkerID
    var stop: StopReason?
    /// The identity of the source to which the bytes belong; nil before the first answer.
    var identity: SourceIdentity?
    var generation = 0
    var file: StagingName?
    var written: Set<Int> = []
    var isSyncing = false

    var sample: ProgressSample {
      ProgressSample(
        taskID: claim.spec.id, epoch: claim.epoch, bytesDone: Int64(written.count) * SimulatedSources.block,
        bytesTotal: identity?.size, rate: 0)
    }
  }

  let simulation: Simulation
  let log: CommandLog
  let fleet: FleetObserver
  let index: Int
  /// Counts the lives of the process. Messages that were sent in an earlier life are lost.
  private var life = 0
  private(set) var isStopped = false
  /// No call arrives anywhere before.
  private var cutOffUntil: BootInstant
  private var clock: WorkerClock
  private var mailbox: [Simulation.Step] = []

  var lease: LeaseMachine
  var fence: Fence?
  var claims: ClaimPlanner
  var ingest: IngestMachine
  var settlements: SettlementPlanner
  var relay: RelayPlanner
  var drain = DrainMachine(limit: .seconds(25))
  var runs: [UniqueID: Run] = [:]
  var batch: Int?
  var round = PendingEvents()
  var producer = 0
  var isRelaying = false
  var isClaiming = false
  var isDraining: Bool { drain.deadline != nil }
  private var restarts = false
  /// Set once it has drained.
  private(set) var exitCode: Int32?

  static let concurrency = 4

  init(_ simulation: Simulation, log: CommandLog, fleet: FleetObserver, index: Int) {
    self.simulation = simulation
    self.log = log
    self.fleet = fleet
    self.index = index
    let seed = simulation.random.next()
    cutOffUntil = simulation.now
    clock = WorkerClock(
      rate: Double.random(in: WorkerClock.rates, using: &simulation.random),
      ahead: simulation.milliseconds(0...1_000_000))
    lease = LeaseMachine(timing: .init(lease: .seconds(15), renewal: .milliseconds(500)), seed: seed)
    claims = ClaimPlanner(concurrency: Self.concurrency, seed: seed)
    ingest = IngestMachine(seed: seed)
    settlements = SettlementPlanner(seed: seed)
    relay = RelayPlanner(now: clock.time(at: simulation.now), seed: seed)
  }

  /// The time on this worker's clock.
  var now: BootInstant { clock.time(at: simulation.now) }

  /// Whether the lease allows changes to the world.
  var mayAct: Bool { fence?.isOpen(at: now) == true }

  // MARK: The process

  func start() async throws {
    let seed = simulation.random.next()
    lease = LeaseMachine(timing: .init(lease: .seconds(15), renewal: .milliseconds(500)), seed: seed)
    claims = ClaimPlanner(concurrency: Self.concurrency, seed: seed)
    ingest = IngestMachine(seed: seed)
    relay = RelayPlanner(now: now, seed: seed)
    drain = DrainMachine(limit: .seconds(25))
    (runs, fence, batch) = ([:], nil, nil)
    (isRelaying, isClaiming) = (false, false)
    try await perform(lease.start())
    try await perform(ingest.start())
    tickRelay()
    sweep()
  }

  /// SIGKILL.
  func kill() {
    simulation.note("process \(self.index) ends")
    life += 1
    isStopped = false
    mailbox = []
    log.release(index)
  }

  func restart() {
    later(simulation.milliseconds(100...5000)) { try await $0.start() }
  }

  /// SIGTERM. The process ends with ``exitCode``.
  func terminate(thenRestart: Bool = false) {
    restarts = thenRestart
    later(.zero) { $0.handle(.stopRequested) }
    later(.seconds(25)) { $0.handle(.tick) }
  }

  func exit(_ code: Int32) {
    exitCode = code
    kill()
    if restarts { restart() }
  }

  /// SIGSTOP, and SIGCONT after `duration`. Messages that arrived meanwhile are handled in any order. The worker's
  /// clock may have stopped or jumped in that time.
  func stop(for duration: Duration) {
    guard !isStopped else { return }
    simulation.note("process \(self.index) is frozen for \(duration)")
    isStopped = true
    let life = life
    simulation.after(duration) { [self] in
      guard life == self.life else { return }
      switch Int.random(in: 0..<4, using: &simulation.random) {
      case 0: clock.standStill(for: duration, at: simulation.now)
      case 1: clock.jump(by: simulation.milliseconds(0...30_000))
      default: break
      }
      simulation.note("process \(self.index) goes on")
      isStopped = false
      while !mailbox.isEmpty, !isStopped {
        let next = Int.random(in: mailbox.indices, using: &simulation.random)
        try await mailbox.remove(at: next)()
      }
    }
  }

  /// The worker loses its network for a while. It continues to work, but reaches neither the store nor the broker.
  func cutOff(for duration: Duration) {
    simulation.note("process \(self.index) is cut off for \(duration)")
    cutOffUntil = max(cutOffUntil, simulation.now + duration)
  }

  /// Runs `body` when the worker's own clock shows `time`.
  func wake(at time: BootInstant, _ body: @escaping @MainActor (SimulatedWorker) async throws -> Void) {
    later(clock.wait(until: time, from: simulation.now), body)
  }

  /// Freezes the process with this probability: what it does from here on, it does when it goes on.
  func freeze(_ probability: Double) {
    if simulation.fault(probability) { stop(for: simulation.freeze) }
  }

  /// Runs `body` now; where the process has just been frozen, after it goes on, whatever the time is then.
  func thereupon(_ body: @escaping @MainActor (SimulatedWorker) async throws -> Void) async throws {
    try await deliver(life) { try await body(self) }
  }

  /// Runs `body` after `delay`, but only in this life, and not while the process is stopped.
  func later(_ delay: Duration, _ body: @escaping @MainActor (SimulatedWorker) async throws -> Void) {
    let life = life
    simulation.after(delay) { [self] in
      try await deliver(life) { try await body(self) }
    }
  }

  private func deliver(_ life: Int, _ step: @escaping Simulation.Step) async throws {
    guard life == self.life else { return }
    freeze(0.0001)
    if isStopped { mailbox.append(step) } else { try await step() }
  }

  /// A call to the store. The process may be frozen before it is sent; then it is sent after `delay` whatever becomes of the
  /// process. It may not arrive, and its answer may not.
  func call<Answer: Sendable>(
    after delay: Duration = .zero, freezing probability: Double = 0.0003,
    _ request: @escaping @MainActor (MemoryStore) async throws -> Answer,
    then reply: @escaping @MainActor (SimulatedWorker, Answer?) async throws -> Void
  ) {
    freeze(probability)
    guard isStopped else { return send(after: delay, request, then: reply) }
    mailbox.append { [self] in send(after: delay, request, then: reply) }
  }

  private func send<Answer: Sendable>(
    after delay: Duration, _ request: @escaping @MainActor (MemoryStore) async throws -> Answer,
    then reply: @escaping @MainActor (SimulatedWorker, Answer?) async throws -> Void
  ) {
    let life = life
    if simulation.fault(0.02) || simulation.now < cutOffUntil {
      return later(.seconds(1)) { try await reply($0, nil) }
    }
    simulation.after(delay + simulation.latency) { [self] in
      let answer = try await request(simulation.store)
      let isLost = simulation.fault(0.02) || simulation.now < cutOffUntil
      simulation.after(isLost ? .seconds(1) : simulation.latency) { [self] in
        try await deliver(life) { try await reply(self, isLost ? nil : answer) }
      }
    }
  }

  // MARK: The lease

  func perform(_ actions: [LeaseMachine.Action]) async throws {
    let sentAt = now
    for action in actions {
      switch action {
      case .register:
        let boot = UniqueID(high: simulation.random.next(), low: simulation.random.next())
        call(
          { store in
            try await store.register(
              WorkerRegistration(
                boot: boot, host: "h", pid: 1, leaseSeconds: 15, kinds: [.download],
                volumes: ["default": UniqueID(high: 1, low: 1)]))
          },
          then: { worker, id in
            let now = worker.now
            if let id {
              try await worker.perform(worker.lease.registered(id, sentAt: sentAt, now: now))
            } else {
              try await worker.perform(worker.lease.registrationFailed(now: now))
            }
          })
      case .begin(let id, let fence):
        simulation.note("process \(self.index) is worker \(id.rawValue)")
        self.fence = Fence(until: fence)
        claims.hint()
        pumpClaims()
      case .renew(let id):
        let samples = runs.values.filter { $0.worker == id }.map(\.sample)
        call(
          freezing: 0.002,
          { [fleet] _ in try await fleet.renew(id, samples) },
          then: { worker, renewal in
            let now = worker.now
            guard let renewal else { return try await worker.perform(worker.lease.renewalFailed(id, now: now)) }
            try await worker.perform(
              worker.lease.renewed(id, sentAt: sentAt, isAlive: renewal.isAlive, now: now))
            for (task, intent) in renewal.intents { worker.runs[task]?.stop = .intent(intent) }
          })
      case .extend(let id, let next):
        if let fence, !fence.extend(until: next, now: { [now] in now }) {
          try await perform(lease.fencePassed(id, now: now))
        }
      case .abandon(let id):
        simulation.note("process \(self.index) has lost the lease of worker \(id.rawValue)")
        fence?.close()
        fence = nil
        runs = [:]
      case .retreat: log.release(index)
      }
    }
    if let next = lease.nextTick {
      wake(at: next) { worker in try await worker.perform(worker.lease.tick(now: worker.now)) }
    }
  }

  func sweep() {
    later(simulation.milliseconds(200...600)) { worker in
      worker.call(
        { try await $0.sweep() },
        then: { worker, result in
          if let result, result.expired + result.due > 0 { worker.claims.hint() }
          worker.pumpClaims()
          worker.sweep()
        })
    }
  }
}
