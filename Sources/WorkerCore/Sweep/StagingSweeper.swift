import ReelhaulSystem
import ReelhaulTelemetry
import TaskStore
import TransferEngine

/// From time to time, removes staging files and scratch directories that no task will need again: staging files of dead
/// runs whose task was canceled or succeeded elsewhere, staging files of tasks that failed long ago, and scratch
/// directories of runs that are over. Every worker does this at random moments for the volumes that it has mounted. A
/// file system that does not answer delays only its own sweeps.
///
/// A task may be retried at the same moment. If its run has adopted the file by then, the file's time has changed and
/// it is kept. A later run finds the file missing and starts again.
package actor StagingSweeper {
  private let loop: EventLoop
  private let store: any TaskReader
  private let storage: Storage
  private let log: Logger
  /// By root.
  private var outages: [String: Outage] = [:]

  /// The mean times before the first sweep and between two sweeps.
  private static let delay = Duration.seconds(10)
  private static let interval = Duration.seconds(60)
  /// How much longer than a sweep the time after it is at least.
  private static let rest = 20.0
  /// How many files, and how many directories, it asks the store about at once.
  private static let page = 1000

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  package init(loop: EventLoop, store: any TaskReader, storage: Storage, log: Logger) {
    self.loop = loop
    self.store = store
    self.storage = storage
    self.log = log
  }

  /// Runs until its task is canceled.
  package func run() async {
    await withDiscardingTaskGroup { group in
      for root in storage.roots.keys { group.addTask { await self.run(root) } }
    }
  }

  private func run(_ root: String) async {
    let files = BlockingPool(name: "sweep", threads: 1)
    defer { files.abandon() }
    var pause = Self.delay
    while !Task.isCancelled {
      do {
        try await loop.sleep(for: pause * Double.random(in: 0.5...1.5))
      } catch {
        return
      }
      let took = await ContinuousClock().measure { await look(at: root, with: files) }
      pause = max(Self.interval, took * Self.rest)
    }
  }

  /// Sweeps every root once.
  package func sweep() async {
    let files = BlockingPool(name: "sweep", threads: 1)
    defer { files.abandon() }
    for root in storage.roots.keys { await look(at: root, with: files) }
  }

  private func look(at root: String, with files: BlockingPool) async {
    do {
      try await sweep(root, files)
      outages[root] = nil
    } catch is CancellationError {
    } catch {
      let level = outages[root, default: Outage()].failed(error)
      log.log(level, "the staging sweep failed", ["storage": .text(root), "error": .text("\(error)")])
    }
  }

  /// Does nothing for a root that is not mounted, or cannot be written to.
  private func sweep(_ root: String, _ files: BlockingPool) async throws {
    let mounted = try await files.runAbandonably { [storage] () -> (Volume, Int, [Volume.Staged], [Volume.Scratch])? in
      guard let volume = try? storage.volume(root), let now = try? volume.now() else { return nil }
      return (volume, now, try volume.staged(), try volume.scratches())
    }
    guard let (volume, now, staged, scratches) = mounted else { return }
    let quiet = now - StagingSweepPlanner.quiet
    var removal = Removal()
    for first in stride(from: 0, to: max(staged.count, scratches.count), by: Self.page) where !Task.isCancelled {
      let planner = StagingSweepPlanner(
        staged.dropFirst(first).prefix(Self.page).map { .init(name: $0.name, age: now - $0.modifiedAt) },
        scratches: scratches.dropFirst(first).prefix(Self.page).map { .init(name: $0.name, age: now - $0.modifiedAt) })
      let tasks = planner.tasks
      guard !tasks.isEmpty else { continue }
      let states = try await store.states(of: Array(tasks))
      let unfinished = try await store.unfinished(derived: planner.derived(states))
      // One file at a time, so that a drain can end the sweep between two files. One that stays holds up no other.
      for name in planner.discards(states, unfinished: unfinished) where !Task.isCancelled {
        try await remove(&removal, files) { try volume.discard(name, unchangedSince: quiet) }
      }
      for name in planner.discardedScratches(states) where !Task.isCancelled {
        try await remove(&removal, files) { try volume.discard(name, unchangedSince: quiet) }
      }
    }
    if removal.count > 0 {
      log.info(
        "unused staging files and scratch directories were removed",
        ["storage": .text(root), "count": .integer(removal.count)])
    }
    if let failure = removal.failure { throw failure }
  }

  private struct Removal {
    var count = 0
    /// Of the first that stayed.
    var failure: StorageError?
  }

  private func remove(
    _ removal: inout Removal, _ files: BlockingPool, _ discard: @escaping @Sendable () throws -> Bool
  ) async throws {
    do {
      if try await files.runAbandonably(discard) { removal.count += 1 }
    } catch let error as StorageError {
      removal.failure = removal.failure ?? error
    }
  }
}
