import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore
import TransferEngine

/// Delivers the events of web hooks.
///
/// Each is posted at least once, with the same id at every attempt, and those of a task one after the other: the next is
/// taken once the one before is delivered or given up. Hosts share the places, and some places are kept for hosts that
/// have none. Hosts that fail, which may hang, get half of the places at most: a receiver that is slow holds up no other.
actor HookCourier {
  private let loop: EventLoop
  private let store: any HookStore
  private let keeper: LeaseKeeper
  private let sender: (any HookSending)?
  private let fleet: FleetSize
  private let metrics: WorkerMetrics
  private let log: Logger
  private let wakeup: Wakeup
  /// Of the store.
  private var outage = Outage()
  /// Of hosts that do not take events.
  private var failing: Set<String> = []
  /// How many are under way, by host.
  private var hosts: [String: Int] = [:]

  /// The mean time between two claims by each of four workers, if nothing was due.
  private static let interval = Duration.seconds(1)
  private static let longestInterval = Duration.seconds(4)
  private static let most = 16
  private static let mostOfHost = 4
  /// Places for the first delivery of a host.
  private static let kept = 4
  /// For all hosts together that fail.
  private static let mostOfFailing = 8
  /// Of so many hosts it remembers that they fail.
  private static let mostFailing = 1000
  private static let source = "/reelhaul"

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  init(
    loop: EventLoop, store: any HookStore, keeper: LeaseKeeper, sender: (any HookSending)?, fleet: FleetSize,
    metrics: WorkerMetrics, log: Logger
  ) {
    self.loop = loop
    self.store = store
    self.keeper = keeper
    self.sender = sender
    self.fleet = fleet
    self.metrics = metrics
    self.log = log
    wakeup = Wakeup(loop: loop)
  }

  /// Runs until its task is canceled. What is under way then is delivered again by another worker.
  func run() async {
    guard let sender else { return }
    await withDiscardingTaskGroup { group in
      while !Task.isCancelled {
        let deliveries = await claim()
        for delivery in deliveries {
          hosts[delivery.event.host, default: 0] += 1
          group.addTask { await self.deliver(delivery, sender) }
        }
        // There may be more.
        guard deliveries.isEmpty else { continue }
        let interval = fleet.pause(Self.interval, of: 4, atMost: Self.longestInterval)
        await wakeup.sleep(until: .now + interval * Double.random(in: 0.5...1.5))
      }
      group.cancelAll()
    }
  }

  private func claim() async -> [HookDelivery] {
    let room = Self.most - hosts.values.reduce(0, +)
    guard room > 0, let lease = await keeper.lease else { return [] }
    do {
      let hasFree = room > Self.kept
      let deliveries = try await store.claimHooks(
        lease.worker, limit: hasFree ? room - Self.kept : room, perHost: hasFree ? Self.mostOfHost : 1, besides: hosts,
        failing: failing, places: max(0, Self.mostOfFailing - failing.reduce(0) { $0 + hosts[$1, default: 0] }))
      if outage.recovered() { log.notice("web hooks are delivered again") }
      return deliveries
    } catch {
      noteOutage(error)
      return []
    }
  }

  private func deliver(_ delivery: HookDelivery, _ sender: any HookSending) async {
    let event = delivery.event
    let outcome = await sender.send(
      HookMessage(
        url: event.url, id: event.id.description,
        body: event.cloudEvent(source: Self.source, createdAt: delivery.createdAt)))
    if !Task.isCancelled {
      note(outcome, of: event.host)
      do {
        try await record(outcome, of: delivery)
      } catch {
        noteOutage(error)
      }
    }
    hosts[event.host] = hosts[event.host].flatMap { $0 > 1 ? $0 - 1 : nil }
    await wakeup.call()
  }

  private func record(_ outcome: HookOutcome, of delivery: HookDelivery) async throws {
    let event = delivery.event
    switch HookPolicy.decide(outcome, of: delivery, jitter: .random(in: 0...1)) {
    case .finish: try await store.finishHook(event.taskID, sequence: event.sequence)
    case .postpone(let wait, let reason):
      try await store.postponeHook(event.taskID, sequence: event.sequence, after: wait, error: reason)
    case .giveUp(let reason):
      log.warning(
        "a web hook is given up",
        [
          "task": .of(event.taskID), "event": .text(event.kind.rawValue), "host": .text(event.host),
          "error": .text(reason),
        ])
      metrics.gaveUpHooks(try await store.giveUpHook(event.taskID, sequence: event.sequence, error: reason))
    }
  }

  private func note(_ outcome: HookOutcome, of host: String) {
    switch outcome {
    case .delivered:
      if failing.remove(host) != nil {
        log.notice("the web hooks at a host take events again", ["host": .text(host)])
      }
    case .failed(let reason, _):
      if failing.count >= Self.mostFailing { failing.removeFirst() }
      log.log(
        failing.insert(host).inserted ? .warning : .debug, "the web hooks at a host do not take events",
        ["host": .text(host), "error": .text(reason)])
    // The host works, and does not want this one.
    case .refused: break
    }
  }

  private func noteOutage(_ error: any Error) {
    log.log(outage.failed(error), "web hooks cannot be delivered", ["error": .text("\(error)")])
  }
}
