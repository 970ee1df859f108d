import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore
import TransferEngine

/// Checks the storage roots every second. This worker claims tasks for the volumes that are mounted now.
///
/// A root that is mounted late, or was away, needs no restart. A root whose file system does not answer counts as
/// gone. It blocks only its own thread and the runs on it, which are abandoned.
package actor VolumeWatch {
  private let loop: EventLoop
  private let storage: Storage
  private let log: Logger
  private let interval: Duration
  /// How long a file system may take to answer.
  private let patience: Duration
  /// The space is measured once in so many checks, and less often where that means to look at many files: a worker spends
  /// about a hundredth of its time with it.
  private static let checksOfRoom = 10
  private static let longestRest = Duration.seconds(300)

  /// Of the storages that can be used now, mostly a few seconds old.
  package private(set) var rooms: [String: StorageSpace] = [:]
  /// Whose space is being measured.
  private var measured: Set<String> = []
  /// Until when the space of a root is not measured again. A storage that comes back is measured at once.
  private var restsUntil: [String: BootInstant] = [:]
  /// The results of the last check.
  private var found: [String: Result<UniqueID, StorageError>] = [:]
  private var onChange: @Sendable () async -> Void = {}
  private var onHang: @Sendable (_ root: String, TaskFailure) async -> Void = { _, _ in }

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  package init(
    loop: EventLoop, storage: Storage, log: Logger, interval: Duration = .seconds(1), patience: Duration = .seconds(5)
  ) {
    self.loop = loop
    self.storage = storage
    self.log = log
    self.interval = interval
    self.patience = patience
  }

  /// The UUIDs of the volumes that can be used now, by root.
  package var volumes: [String: UniqueID] { found.compactMapValues { try? $0.get() } }

  /// Runs until its task is canceled. Calls `onChange` when ``volumes`` may have changed, and `onHang` repeatedly
  /// while a root does not answer.
  package func run(
    onChange: @escaping @Sendable () async -> Void,
    onHang: @escaping @Sendable (_ root: String, TaskFailure) async -> Void
  ) async {
    self.onChange = onChange
    self.onHang = onHang
    await withDiscardingTaskGroup { group in
      for root in storage.roots.keys { group.addTask { await self.watch(root) } }
    }
  }

  private func watch(_ root: String) async {
    let thread = BlockingPool(name: "root-\(root)", threads: 1)
    let ruler = BlockingPool(name: "room-\(root)", threads: 1)
    defer { for pool in [thread, ruler] { pool.abandon() } }
    while !Task.isCancelled {
      // Repeatedly, because a claim that was under way may still start runs on this root.
      let patience = loop.timer(after: patience, every: patience) { [self] in assumeIsolated { $0.hangs(root) } }
      let look = try? await thread.runAbandonably { [storage] () -> Result<UniqueID, StorageError> in
        do throws(StorageError) { return .success(try storage.usable(root).id) } catch { return .failure(error) }
      }
      patience.cancel()
      if let look {
        storage.note(root, answers: true)
        note(look, of: root)
        if volumes[root] != nil, restsUntil[root]?.hasPassed ?? true {
          loop.task { [self] in await measure(root, on: ruler) }
        }
      }
      try? await loop.sleep(for: interval)
    }
  }

  /// On a thread of its own: it may mean to read a directory, which may take longer than a root that answers.
  private func measure(_ root: String, on ruler: BlockingPool) async {
    guard measured.insert(root).inserted else { return }
    let begunAt = BootInstant.now
    defer { measured.remove(root) }
    let room = try? await ruler.runAbandonably { [storage] in try storage.volume(root).room() }
    guard volumes[root] != nil else { return }
    restsUntil[root] = .now + max(interval * Self.checksOfRoom, min((.now - begunAt) * 100, Self.longestRest))
    guard let room else { return }
    rooms[root] = StorageSpace(free: room.free, promised: room.promised, total: room.total)
  }

  private func hangs(_ root: String) {
    let error = StorageError.silent(root)
    storage.note(root, answers: false)
    note(.failure(error), of: root)
    loop.task { [onHang] in await onHang(root, error.failure) }
  }

  private func note(_ look: Result<UniqueID, StorageError>, of root: String) {
    let before = found.updateValue(look, forKey: root)
    guard before != look else { return }
    switch look {
    case .success(let volume):
      log.notice("a storage is usable", ["storage": .text(root), "volume": .of(volume)])
    case .failure(let error):
      (rooms[root], restsUntil[root]) = (nil, nil)
      log.error("a storage is not usable", ["storage": .text(root), "error": .text("\(error)")])
    }
    loop.task { [onChange] in await onChange() }
  }
}
