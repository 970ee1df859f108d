import System
import TaskCore
import TaskStore
import Telemetry

/// Takes tasks from the store while places are free: runs what ``ClaimPlanner`` decides.
package actor Claimer {
  private let loop: EventLoop
  private let store: any TaskStore
  private let keeper: LeaseKeeper
  private let runner: Runner
  private let log: Logger
  /// Called when runs began, which is an event to relay.
  private let onClaimed: @Sendable () async -> Void
  private let wakeup: Wakeup
  private var planner: ClaimPlanner
  /// A claim was sent and its answer lost: the store may hold runs for this worker that it does not know of.
  private var mayHoldUnknown = false

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  package init(
    loop: EventLoop, store: any TaskStore, keeper: LeaseKeeper, runner: Runner, planner: ClaimPlanner, log: Logger,
    onClaimed: @escaping @Sendable () async -> Void
  ) {
    self.loop = loop
    self.store = store
    self.keeper = keeper
    self.runner = runner
    self.planner = planner
    wakeup = Wakeup(loop: loop)
    self.log = log
    self.onClaimed = onClaimed
  }

  /// Something may have become ready.
  package func hint() async {
    planner.hint()
    await wakeup.call()
  }

  /// A run has ended.
  package func placeFreed() async {
    await wakeup.call()
  }

  /// Runs until its task is canceled; a claim in flight is seen through, so that none is lost.
  package func run() async {
    while !Task.isCancelled {
      guard let lease = await keeper.lease else {
        await wakeup.sleep(until: nil)
        continue
      }
      switch planner.next(free: await runner.free, now: .now) {
      case .wait(let until): await wakeup.sleep(until: until)
      case .claim(let limit): await claim(limit, under: lease)
      }
    }
  }

  private func claim(_ limit: Int, under lease: Lease) async {
    do {
      if mayHoldUnknown { try await handBackUnknown(under: lease) }
      let claims = try await loop.uninterrupted { [store] in try await store.claim(lease.worker, limit: limit) }
      planner.claimed(claims.count, of: limit, now: .now)
      guard !claims.isEmpty else { return }
      await runner.start(claims, under: lease)
      await onClaimed()
    } catch {
      mayHoldUnknown = true
      planner.failed(now: .now)
      log.debug("a claim failed", ["error": .text("\(error)")])
    }
  }

  /// Releases what the store says runs here and does not: claimed by a call whose answer was lost.
  private func handBackUnknown(under lease: Lease) async throws {
    var unknown: [Settlement] = []
    for run in try await store.runs(of: lease.worker) where await !runner.isRunning(run.taskID) {
      unknown.append(
        Settlement(taskID: run.taskID, epoch: run.epoch, outcome: .released(reason: nil, delay: .zero)))
    }
    if !unknown.isEmpty {
      _ = try await store.settle(unknown)
      log.notice("tasks of a lost claim are handed back", ["count": .integer(unknown.count)])
    }
    mayHoldUnknown = false
  }
}
