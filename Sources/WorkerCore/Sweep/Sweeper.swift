import ReelhaulSystem
import ReelhaulTelemetry
import TaskStore

/// From time to time, requeues the tasks of workers whose lease is over, and wakes delayed tasks. Rarely, it tidies the
/// store. Every worker does this at random moments, so no particular worker is needed, and the more rarely, the more of
/// them there are.
package actor Sweeper {
  private let loop: EventLoop
  private let store: any HousekeepingStore
  private let interval: Duration
  private let fleet: FleetSize
  private let log: Logger
  /// Called when tasks became ready.
  private let onReady: @Sendable () async -> Void
  /// Whether more tasks may be due than the last sweep has woken.
  private var isBehind = false
  private var outage = Outage()
  /// Those of the rare steps, by what the log says of them.
  private var outages: [String: Outage] = [:]
  private var hasRested = false
  /// The mean time between two tidyings, by all workers together.
  private let tidyPause: Duration

  /// If a sweep of the store wakes so many tasks, more may be due: it takes 5,000 at most.
  private static let many = 1_000
  /// The longest mean pause: the other workers may end at once.
  private static let longest = Duration.seconds(4)

  /// How long a worker may be silent within a batch of commands: longer than it waits for any statement.
  private static let silence = Duration.seconds(90)

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// All together sweep as often as two workers with pauses of a random half to one and a half `interval`. Each sweep tells
  /// `fleet` how many there are.
  package init(
    loop: EventLoop, store: any HousekeepingStore, interval: Duration, fleet: FleetSize,
    tidyPause: Duration = .seconds(600), log: Logger, onReady: @escaping @Sendable () async -> Void
  ) {
    self.loop = loop
    self.store = store
    self.interval = interval
    self.fleet = fleet
    self.tidyPause = tidyPause
    self.log = log
    self.onReady = onReady
  }

  /// Runs until its task is canceled.
  package func run() async {
    while !Task.isCancelled {
      do {
        if !isBehind { try await loop.sleep(for: pause * Double.random(in: 0.5...1.5)) }
      } catch {
        return
      }
      await sweep()
    }
  }

  private var pause: Duration { fleet.pause(interval, of: 2, atMost: Self.longest) }

  private func sweep() async {
    // First, because the sweep may wait for such a batch, too. If the store cannot, the sweep tells of it.
    if outage.isOn || isTurn(every: tidyPause / 60),
      let ended = try? await store.endStalledBatches(silentFor: Self.silence), ended > 0
    {
      log.warning("ended sessions that had stopped in a batch of commands", ["count": .integer(ended)])
    }
    do {
      let result = try await store.sweep()
      outage.recovered()
      fleet.found(result.workers)
      isBehind = result.due >= Self.many
      if result.expired > 0 {
        log.notice("tasks of an expired worker are queued again", ["count": .integer(result.expired)])
      }
      if result.expired + result.due > 0 { await onReady() }
    } catch {
      isBehind = false
      // A drain may cancel the sweep between two steps.
      guard !Task.isCancelled else { return }
      log.log(outage.failed(error), "the sweep failed", ["error": .text("\(error)")])
      return
    }
    if isTurn(every: .milliseconds(500)) {
      await go(on: "what workers have learned of hosts is not in force") { try await store.putLearnedLimitsInForce() }
      await go(on: "web hooks cannot get their new URLs") { try await store.goOnMovingHooks() }
    }
    await tidy()
  }

  /// Whether this worker is to take a step that all together take once in `time`, on average: by chance, without a memory,
  /// because workers may all end before any of them has waited for so long.
  private func isTurn(every time: Duration) -> Bool {
    Double.random(in: 0..<1) < pause / time / Double(fleet.workers)
  }

  private func tidy() async {
    if !hasRested {
      // A database that was restored has lanes that only this puts right. All else can wait: all workers may start at once.
      await go(on: "lanes cannot be switched off") {
        try await store.restLanes()
        hasRested = true
      }
    }
    if isTurn(every: tidyPause) {
      await go(on: "the store cannot be tidied") { try await store.tidy() }
    }
  }

  /// A step whose failure holds up no other.
  private func go(on failure: String, _ step: () async throws -> Void) async {
    do {
      try await step()
      outages[failure] = nil
    } catch {
      guard !Task.isCancelled else { return }
      log.log(outages[failure, default: Outage()].failed(error), failure, ["error": .text("\(error)")])
    }
  }
}
