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
  private let log: Logger
  /// Called when tasks became ready.
  private let onReady: @Sendable () async -> Void
  /// How many workers the last sweep found.
  private var workers = 1
  /// Whether more tasks may be due than the last sweep has woken.
  private var isBehind = false
  private var outage = Outage()
  /// Those of the rare steps, by what the log says of them.
  private var outages: [String: Outage] = [:]
  /// Soon after the start: a database that was restored has lanes that only this puts right.
  private var tidiesAt: BootInstant

  /// If a sweep of the store wakes so many tasks, more may be due: it takes 5,000 at most.
  private static let many = 1_000
  /// The longest mean pause: the other workers may end at once.
  private static let longest = Duration.seconds(4)

  /// The time until the store is tidied again, by all workers together.
  private static var pause: Duration { .seconds(600) * Double.random(in: 0.5...1.5) }
  private static let longestPause = Duration.seconds(900)

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// All together sweep as often as two workers with pauses of a random half to one and a half `interval`. The store is
  /// tidied for the first time within `tidiesWithin`.
  package init(
    loop: EventLoop, store: any HousekeepingStore, interval: Duration, tidiesWithin: Duration = .seconds(60),
    log: Logger, onReady: @escaping @Sendable () async -> Void
  ) {
    self.loop = loop
    self.store = store
    self.interval = interval
    tidiesAt = .now + tidiesWithin * Double.random(in: 0...1)
    self.log = log
    self.onReady = onReady
  }

  /// Runs until its task is canceled.
  package func run() async {
    while !Task.isCancelled {
      do {
        let share = min(interval * Double(max(2, workers)) / 2, max(interval, Self.longest))
        if !isBehind { try await loop.sleep(for: share * Double.random(in: 0.5...1.5)) }
      } catch {
        return
      }
      await sweep()
    }
  }

  private func sweep() async {
    do {
      let result = try await store.sweep()
      outage.recovered()
      workers = result.workers
      isBehind = result.due >= Self.many
      if result.expired > 0 {
        log.notice("tasks of an expired worker are queued again", ["count": .integer(result.expired)])
      }
      if result.expired + result.due > 0 { await onReady() }
      await go(on: "web hooks cannot get their new URLs") { try await store.goOnMovingHooks() }
      // There may have been more workers when that was chosen.
      tidiesAt = min(tidiesAt, .now + Self.longestPause * Double(max(1, workers)))
      guard BootInstant.now >= tidiesAt else { return }
      tidiesAt = .now + Self.pause * Double(max(1, workers))
      await go(on: "the store cannot be tidied") { try await store.tidy() }
    } catch {
      isBehind = false
      // A drain may cancel the sweep between two steps.
      guard !Task.isCancelled else { return }
      log.log(outage.failed(error), "the sweep failed", ["error": .text("\(error)")])
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
