import ReelhaulSystem
import ReelhaulTelemetry
import TaskStore

/// Now and then takes the tasks of workers whose lease is over back into the queue, and makes due what was delayed;
/// rarely, tidies the store. Every worker does, at random moments, so none is needed.
package actor Sweeper {
  private let loop: EventLoop
  private let store: any HousekeepingStore
  private let interval: Duration
  private let log: Logger
  /// Called when tasks became ready.
  private let onReady: @Sendable () async -> Void
  private var outage = Outage()
  private var tidiesAt = BootInstant.now + pause

  /// Until the store is tidied next.
  private static var pause: Duration { .seconds(600) * Double.random(in: 0.5...1.5) }

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// Sweeps every half to one and a half `interval`.
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
      // A drain ends it in the middle.
      guard !Task.isCancelled else { return }
      log.log(outage.failed(), "the sweep failed", ["error": .text("\(error)")])
    }
  }
}
