import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore

/// Deletes what removed and canceled tasks left elsewhere, by calling the handler of the task's kind.
///
/// Each clean-up is done at least once, by any worker that has the kind and the storages. One that fails is tried again
/// after a while, for as long as it takes. Clean-ups of one kind and the same storages are a line: they are done one after
/// the other, and lines beside each other. A call that does not return holds up its own line alone.
package actor Cleaner {
  private let loop: EventLoop
  private let store: any CleanupStore
  private let keeper: LeaseKeeper
  private let handlers: HandlerTable
  private let log: Logger
  /// How long one clean-up may take.
  private let patience: Duration
  private var outage = Outage()
  private var lines: [CleanupLine: Task<Void, any Error>] = [:]

  /// The mean time between two claims of clean-ups.
  private static let interval = Duration.seconds(2)
  private static let batch = 20
  private static let longestWait = 3600
  /// They are the worker's for a minute. No clean-up of a batch is begun later than this after the claim.
  private static let latestStart = Duration.seconds(25)

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// - Parameter patience: with the latest start within a batch, it must stay below the minute.
  package init(
    loop: EventLoop, store: any CleanupStore, keeper: LeaseKeeper, handlers: HandlerTable, log: Logger,
    patience: Duration
  ) {
    self.loop = loop
    self.store = store
    self.keeper = keeper
    self.handlers = handlers
    self.log = log
    self.patience = patience
  }

  /// Whether clean-ups are under way: what they wait for may never come.
  package var isBusy: Bool { !lines.isEmpty }

  /// Runs until its task is canceled.
  package func run() async {
    while !Task.isCancelled {
      do {
        try await loop.sleep(for: Self.interval * Double.random(in: 0.5...1.5))
      } catch {
        break
      }
      await clean()
    }
    for line in lines.values { line.cancel() }
  }

  /// Takes some clean-ups, and begins them.
  package func clean() async {
    guard let lease = await keeper.lease else { return }
    do {
      let claimedAt = BootInstant.now
      let cleanups = try await store.claimCleanups(lease.worker, limit: Self.batch, except: Set(lines.keys))
      for (line, cleanups) in Dictionary(grouping: cleanups, by: { CleanupLine($0.spec) }) {
        lines[line] = loop.task { await self.work(off: cleanups, of: line, lease, claimedAt) }
      }
      if outage.recovered() { log.notice("tasks are cleaned up again") }
    } catch {
      noteOutage(error)
    }
  }

  private func noteOutage(_ error: any Error) {
    log.log(outage.failed(), "tasks cannot be cleaned up", ["error": .text("\(error)")])
  }

  /// Those that it does not come to are given out again when their minute is over.
  private func work(off cleanups: [Cleanup], of line: CleanupLine, _ lease: Lease, _ claimedAt: BootInstant) async {
    for cleanup in cleanups {
      guard !Task.isCancelled, lease.fence.isOpen, .now < claimedAt + Self.latestStart else { break }
      do {
        guard try await clean(cleanup) else { break }
      } catch {
        noteOutage(error)
        break
      }
    }
    lines[line] = nil
  }

  /// False if it took too long, or the worker ends.
  private func clean(_ cleanup: Cleanup) async throws -> Bool {
    guard let handler = handlers[cleanup.spec.kind] else { return true }
    let work = loop.task { try await handler.cleanUp(cleanup) }
    let isInTime = await withTaskCancellationHandler {
      await hasEnded(work)
    } onCancel: {
      work.cancel()
    }
    guard isInTime else {
      work.cancel()
      do {
        if !Task.isCancelled { try await postpone(cleanup, "it takes longer than \(patience)") }
      } catch {
        noteOutage(error)
      }
      // The line is not free before: what this one waits for holds up the next, too.
      _ = await work.result
      return false
    }
    do {
      try await work.value
    } catch {
      try await postpone(cleanup, (error as? TaskFailure)?.message ?? "\(error)")
      return true
    }
    try await store.finishCleanups([cleanup.id])
    return true
  }

  private func postpone(_ cleanup: Cleanup, _ reason: String) async throws {
    let wait = Duration.seconds(min(Self.longestWait, 15 << min(cleanup.attempt, 8)))
    log.warning(
      "what a task left cannot be deleted; it is tried again",
      ["task": .of(cleanup.spec.id), "attempt": .integer(cleanup.attempt), "error": .text(reason)])
    try await store.postponeCleanup(cleanup.id, after: wait, error: reason)
  }

  /// Waits for the end of the task, as long as a clean-up may take; false where it has not ended by then.
  private func hasEnded(_ work: Task<Void, any Error>) async -> Bool {
    let end = Wakeup(loop: loop)
    let ended = Lock(false)
    loop.task {
      _ = await work.result
      ended.withLock { $0 = true }
      await end.call()
    }
    await end.sleep(until: .now + patience)
    return ended.withLock { $0 }
  }
}
