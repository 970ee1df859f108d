import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore

/// Deletes what removed and canceled tasks left elsewhere, by calling the handler of the task's kind.
///
/// Each clean-up is done at least once, by any worker that has the kind and the storages. If it fails, it is tried
/// again later, until it succeeds.
package actor Cleaner {
  private let loop: EventLoop
  private let store: any CleanupStore
  private let keeper: LeaseKeeper
  private let handlers: HandlerTable
  private let log: Logger
  private var outage = Outage()

  /// The mean time between two claims of clean-ups.
  private static let interval = Duration.seconds(2)
  /// The most clean-ups in one claim. They are claimed for a minute, and done one after the other.
  private static let batch = 20
  private static let longestWait = 3600

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  package init(
    loop: EventLoop, store: any CleanupStore, keeper: LeaseKeeper, handlers: HandlerTable, log: Logger
  ) {
    self.loop = loop
    self.store = store
    self.keeper = keeper
    self.handlers = handlers
    self.log = log
  }

  /// Runs until its task is canceled.
  package func run() async {
    while !Task.isCancelled {
      do {
        try await loop.sleep(for: Self.interval * Double.random(in: 0.5...1.5))
      } catch {
        return
      }
      await clean()
    }
  }

  /// Claims some clean-ups and does them.
  package func clean() async {
    guard let lease = await keeper.lease else { return }
    do {
      let cleanups = try await store.claimCleanups(lease.worker, limit: Self.batch)
      for cleanup in cleanups where !Task.isCancelled && lease.fence.isOpen { try await clean(cleanup) }
      if outage.recovered() { log.notice("tasks are cleaned up again") }
    } catch {
      log.log(outage.failed(), "tasks cannot be cleaned up", ["error": .text("\(error)")])
    }
  }

  private func clean(_ cleanup: Cleanup) async throws {
    do {
      try await handlers[cleanup.spec.kind]?.cleanUp(cleanup)
    } catch {
      let wait = Duration.seconds(min(Self.longestWait, 15 << min(cleanup.attempt, 8)))
      log.warning(
        "a clean-up failed and is tried again",
        ["task": .of(cleanup.spec.id), "attempt": .integer(cleanup.attempt), "error": .text("\(error)")])
      return try await store.postponeCleanup(cleanup.id, after: wait, error: "\(error)")
    }
    try await store.finishCleanups([cleanup.id])
  }
}
