import ReelhaulSystem
import ReelhaulTelemetry
import TaskStore

/// From time to time, requeues the tasks of workers whose lease is over, and wakes delayed tasks. Rarely, it tidies the
/// store. Every worker does this at random moments, so no particular worker is needed.
package actor Sweeper {
  private let loop: EventLoop
  private let store: any HousekeepingStore
  private let interval: Duration
  private let log: Logger
  /// Called when tasks became ready.
  private let onReady: @Sendable () async -> Void
  private var outage = Outage()
  private var tidiesAt = BootInstant.now + pause

  /// The time until the store is tidied again.
  private static var pause: Duration { .seconds(600) * Double.random(in: 0.5...1.5) }

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// Sweeps after a random half to one and a half `interval`.
  package init(
    loop: EventLoop, store: any HousekeepingStore, interval: Duration, log: Logger,
    onReady: @escaping @Sendable () async -> Void
  ) {
    self.loop = loop
    self.store = store
    self.interval = interval
    self.log = log
    self.onReady = onReady
  }

  /// Runs until its task is canceled.
  package func run() async {
    while !Task.isCancelled {
      do {
        try await loop.sleep(for: interval * Double.random(in: 0.5...1.5))
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
      if result.expired > 0 {
        log.notice("tasks of an expired worker are queued again", ["count": .integer(result.expired)])
      }
      if result.expired + result.due > 0 { await onReady() }
      guard BootInstant.now >= tidiesAt else { return }
      tidiesAt = .now + Self.pause
      try await store.tidy()
    } catch {
      // A drain may cancel the sweep between two steps.
      guard !Task.isCancelled else { return }
      log.log(outage.failed(), "the sweep failed", ["error": .text("\(error)")])
    }
  }
}
