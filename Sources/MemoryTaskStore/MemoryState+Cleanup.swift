import TaskCore
import TaskStore

/// A clean-up of ``MemoryStore``.
struct MemoryCleanup {
  var cleanup: Cleanup
  var runAt: Timestamp
  /// Until this time, the worker that claimed it works on it.
  var claimedUntil: Timestamp?
}

extension MemoryState {
  /// Adds a clean-up for a task that has a checkpoint. With `files`, adds one for every task, and the handler deletes
  /// the files that the task made.
  mutating func leaveToCleanUp(_ task: MemoryTask, files: Bool) {
    guard files || task.checkpoint != nil else { return }
    lastCleanup += 1
    cleanups[lastCleanup] = MemoryCleanup(
      cleanup: Cleanup(id: lastCleanup, spec: task.spec, checkpoint: task.checkpoint, files: files, attempt: 0),
      runAt: now)
  }

  mutating func claimCleanups(_ worker: WorkerID, limit: Int, except busy: Set<CleanupLine>) -> [Cleanup] {
    guard let owner = workers[worker], !owner.isDead, owner.leaseUntil > now else { return [] }
    let due = cleanups.values.filter { row in
      let line = row.cleanup.line
      return row.runAt <= now && row.claimedUntil.map { $0 < now } ?? true
        && owner.registration.kinds.contains(line.kind)
        && line.storages.allSatisfy { owner.registration.volumes[$0] != nil }
        && !busy.contains(line)
    }
    return due.sorted { ($0.runAt, $0.cleanup.id) < ($1.runAt, $1.cleanup.id) }.prefix(limit).map { row in
      var row = row
      row.cleanup.attempt += 1
      row.claimedUntil = now.advanced(bySeconds: 60)
      cleanups[row.cleanup.id] = row
      return row.cleanup
    }
  }

  mutating func returnCleanups(_ ids: [Int64]) {
    for id in ids {
      cleanups[id]?.cleanup.attempt -= 1
      cleanups[id]?.claimedUntil = nil
    }
  }

  mutating func postponeCleanup(_ id: Int64, after delay: Duration) {
    cleanups[id]?.runAt = now.advanced(by: delay)
    cleanups[id]?.claimedUntil = nil
  }
}

extension MemoryStore {
  package func claimCleanups(
    _ worker: WorkerID, limit: Int, except busy: Set<CleanupLine>
  ) async throws -> [Cleanup] {
    transaction { $0.claimCleanups(worker, limit: limit, except: busy) }
  }

  package func finishCleanups(_ ids: [Int64]) async throws {
    transaction { state in for id in ids { state.cleanups[id] = nil } }
  }

  package func returnCleanups(_ ids: [Int64]) async throws {
    transaction { $0.returnCleanups(ids) }
  }

  package func postponeCleanup(_ id: Int64, after delay: Duration, error: String) async throws {
    transaction { $0.postponeCleanup(id, after: delay) }
  }
}
