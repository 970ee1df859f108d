import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore

/// Deletes what removed and canceled tasks left elsewhere, by calling the handler of the task's kind.
///
/// Each clean-up is done at least once, by any worker that has the kind and the storages. One that fails is tried again
/// after a while, for as long as it takes. Clean-ups of one kind and the same storages are a line: on one worker they are
/// done one after the other, and lines beside each other. A call that does not return holds up its own line alone.
package actor Cleaner {
  private let loop: EventLoop
  private let store: any CleanupStore
  private let keeper: LeaseKeeper
  private let handlers: HandlerTable
  private let fleet: FleetSize
  private let log: Logger
  /// How long one clean-up may take.
  private let patience: Duration
  private var outage = Outage()
  private let wakeup: Wakeup
  private var lines: [CleanupLine: Task<Void, any Error>] = [:]

  /// The mean time between two claims of clean-ups by each of four workers, unless there are more than one claim takes.
  private static let interval = Duration.seconds(2)
  private static let longestInterval = Duration.seconds(10)
  private static let batch = 100
  /// They are told to the store together. Those that it is not told are done once more.
  private static let doneAtOnce = 50
  private static let longestWait = 3600
  /// They are the worker's for a minute. No clean-up of a batch is begun later than this after the claim.
  private static let latestStart = Duration.seconds(25)

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// - Parameter patience: with the latest start within a batch, it must stay below the minute.
  package init(
    loop: EventLoop, store: any CleanupStore, keeper: LeaseKeeper, handlers: HandlerTable, fleet: FleetSize,
    log: Logger, patience: Duration
  ) {
    self.loop = loop
    self.store = store
    self.keeper = keeper
    self.handlers = handlers
    self.fleet = fleet
    self.log = log
    self.patience = patience
    wakeup = Wakeup(loop: loop)
  }

  /// Whether clean-ups are under way: what they wait for may never come.
  package var isBusy: Bool { !lines.isEmpty }

  /// Runs until its task is canceled.
  package func run() async {
    while !Task.isCancelled {
      let interval = fleet.pause(Self.interval, of: 4, atMost: Self.longestInterval)
      await wakeup.sleep(until: .now + interval * Double.random(in: 0.5...1.5))
      await clean()
    }
    for line in lines.values { line.cancel() }
  }

  /// Takes some clean-ups, and begins them. Never twice at once: the other one would not know of the lines that this one
  /// begins.
  private func clean() async {
    guard !Task.isCancelled, let lease = await keeper.lease else { return }
    do {
      let claimedAt = BootInstant.now
      let cleanups = try await store.claimCleanups(lease.worker, limit: Self.batch, except: Set(lines.keys))
      for (line, claimed) in Dictionary(grouping: cleanups, by: \.line) {
        lines[line] = loop.task {
          let isWhole = await self.work(off: claimed, lease, claimedAt)
          await self.ended(line, mayHaveMore: isWhole && cleanups.count == Self.batch)
        }
      }
      if outage.recovered() { log.notice("tasks are cleaned up again") }
    } catch {
      noteOutage(error)
    }
  }

  private func noteOutage(_ error: any Error) {
    log.log(outage.failed(error), "tasks cannot be cleaned up", ["error": .text("\(error)")])
  }

  private func ended(_ line: CleanupLine, mayHaveMore: Bool) async {
    lines[line] = nil
    if mayHaveMore { await wakeup.call() }
  }

  /// Returns whether the store knows of all of them what became of them.
  private func work(off cleanups: [Cleanup], _ lease: Lease, _ claimedAt: BootInstant) async -> Bool {
    var rest = cleanups[...]
    var done: [Int64] = []
    do {
      while let cleanup = rest.first, !Task.isCancelled, lease.fence.isOpen, .now < claimedAt + Self.latestStart {
        rest.removeFirst()
        let begunAt = BootInstant.now
        switch await clean(cleanup) {
        case .done: done.append(cleanup.id)
        case .failed(let reason):
          try await postpone(cleanup, reason)
          // Each of the same server would take as long.
          if .now - begunAt > patience / 6 { rest = try await postpone(like: cleanup, in: rest, "takes long to fail") }
        case .hangs(let work):
          do { try await hung(cleanup, rest, done) } catch { noteOutage(error) }
          // The line is not free before: what this one waits for holds up the next, too.
          _ = await work.result
          return true
        case .stopped: return false
        }
        if done.count == Self.doneAtOnce {
          try await store.finishCleanups(done)
          done = []
        }
      }
      try await store.finishCleanups(done)
      try await store.returnCleanups(rest.map(\.id))
      return true
    } catch {
      noteOutage(error)
      return false
    }
  }

  /// One takes too long. Those of the same server wait as it does, and the others are given back: their minute would not
  /// be enough.
  private func hung(_ cleanup: Cleanup, _ rest: ArraySlice<Cleanup>, _ done: [Int64]) async throws {
    try await store.finishCleanups(done)
    try await postpone(cleanup, "it takes longer than \(patience)")
    let others = try await postpone(like: cleanup, in: rest, "takes longer than \(patience)")
    try await store.returnCleanups(others.map(\.id))
  }

  /// Lets those of the same server wait. Returns the others.
  private func postpone(
    like cleanup: Cleanup, in rest: ArraySlice<Cleanup>, _ reason: String
  ) async throws -> ArraySlice<Cleanup> {
    let host = Self.host(of: cleanup)
    guard !host.isEmpty else { return rest }
    for other in rest where Self.host(of: other) == host {
      try await store.postponeCleanup(
        other.id, after: Self.wait(other), error: "another clean-up at \(host) \(reason)")
    }
    return rest.filter { Self.host(of: $0) != host }[...]
  }

  /// The server at which something was left; empty if it was none.
  private static func host(of cleanup: Cleanup) -> String {
    var spec = cleanup.spec
    spec.source = ""
    return LaneKey(spec).host
  }

  private enum End {
    case done
    case failed(String)
    case hangs(Task<Void, any Error>)
    /// The worker ends.
    case stopped
  }

  private func clean(_ cleanup: Cleanup) async -> End {
    guard let handler = handlers[cleanup.spec.kind] else { return .failed("this worker has no such handler") }
    let work = loop.task { try await handler.cleanUp(cleanup) }
    let isInTime = await withTaskCancellationHandler {
      await loop.result(of: work, by: .now + patience) != nil
    } onCancel: {
      work.cancel()
    }
    guard isInTime else {
      work.cancel()
      return Task.isCancelled ? .stopped : .hangs(work)
    }
    do {
      try await work.value
      return .done
    } catch {
      return .failed((error as? TaskFailure)?.message ?? "\(error)")
    }
  }

  private func postpone(_ cleanup: Cleanup, _ reason: String) async throws {
    log.warning(
      "what a task left cannot be deleted; it is tried again",
      ["task": .of(cleanup.spec.id), "attempt": .integer(cleanup.attempt), "error": .text(reason)])
    try await store.postponeCleanup(cleanup.id, after: Self.wait(cleanup), error: reason)
  }

  private static func wait(_ cleanup: Cleanup) -> Duration {
    .seconds(min(longestWait, 15 << min(cleanup.attempt, 8)))
  }
}
