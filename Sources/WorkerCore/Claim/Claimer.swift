import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore

/// Claims tasks from the store while more may run. ``ClaimPlanner`` makes the decisions.
package actor Claimer {
  private let loop: EventLoop
  private let store: any RunStore
  private let keeper: LeaseKeeper
  private let runner: Runner
  private let fleet: FleetSize
  private let metrics: WorkerMetrics
  private let log: Logger
  /// Called when runs have begun, because their events must be relayed.
  private let onClaimed: @Sendable () async -> Void
  private let wakeup: Wakeup
  private var planner: ClaimPlanner
  private var outage = Outage()
  /// The longest time between two looks of an idle worker.
  private static let longestPause = Duration.seconds(1)

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  package init(
    loop: EventLoop, store: any RunStore, keeper: LeaseKeeper, runner: Runner, planner: ClaimPlanner,
    fleet: FleetSize, metrics: WorkerMetrics, log: Logger,
    onClaimed: @escaping @Sendable () async -> Void
  ) {
    self.loop = loop
    self.store = store
    self.keeper = keeper
    self.runner = runner
    self.planner = planner
    self.fleet = fleet
    wakeup = Wakeup(loop: loop)
    self.metrics = metrics
    self.log = log
    self.onClaimed = onClaimed
  }

  /// Tasks may have become ready.
  package func hint() async {
    planner.hint()
    await wakeup.call()
  }

  /// A run has ended.
  package func runEnded() async {
    await wakeup.call()
  }

  /// Runs until its task is canceled. A claim in flight is completed, so that no claimed task is lost.
  package func run() async {
    while !Task.isCancelled {
      guard let lease = await keeper.lease else {
        await wakeup.sleep(until: nil)
        continue
      }
      let free = await runner.free
      planner.idlePause = fleet.pause(ClaimPlanner.shortestIdlePause, of: 4, atMost: Self.longestPause)
      switch planner.next(free: free, now: .now) {
      case .wait(let until): await wakeup.sleep(until: until)
      case .claim(let limit): await claim(limit, free: free, under: lease)
      }
    }
  }

  private func claim(_ limit: Int, free: Int, under lease: Lease) async {
    let sentAt = BootInstant.now
    do {
      let (claims, leavesTasks, areReady) = try await loop.uninterrupted { [store, planner] in
        try await store.claim(lease.worker, limit: limit, free: free, by: planner, now: sentAt)
      }
      let now = BootInstant.now
      metrics.claims.observe(nanoseconds: sentAt.duration(to: now).nanoseconds)
      planner.claimed(claims.count, of: limit, leavesTasks: leavesTasks, areReady: areReady, now: now)
      if outage.recovered() { log.notice("tasks are claimed again") }
      guard !claims.isEmpty else { return }
      await runner.start(claims, under: lease)
      await onClaimed()
    } catch {
      planner.failed(now: .now)
      log.log(outage.failed(error), "tasks cannot be claimed", ["error": .text("\(error)")])
    }
  }
}

extension RunStore {
  /// Makes the present call of `planner`. If it looks first, for no more tasks than the worker's part, or not at all.
  package func claim(
    _ worker: WorkerID, limit: Int, free: Int, by planner: ClaimPlanner, now: BootInstant
  ) async throws -> (claims: [Claim], leavesTasks: Bool, areReady: Bool) {
    guard planner.looksFirst else { return (try await claim(worker, limit: limit, call: planner.call), false, false) }
    let demand = try await demand(on: worker)
    let part = planner.part(of: limit, free: free, demand, now: now)
    let ready = demand?.ready ?? 0
    let leavesTasks = part < min(limit, ready)
    guard part > 0 else { return ([], leavesTasks, ready > 0) }
    let claims = try await claim(worker, limit: part, call: planner.call)
    // What it did not get of its part cannot run now: a limit is reached, or a storage missing.
    return (claims, leavesTasks && claims.count == part, ready > 0)
  }
}
