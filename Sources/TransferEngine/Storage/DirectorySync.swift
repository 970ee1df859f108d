import Glibc
import ReelhaulSystem

/// Makes renames durable, many at a time: callers that ask for a directory which is being synced share its next sync.
package final class DirectorySync: Sendable {
  private struct Key: Hashable {
    var device: dev_t
    var inode: ino_t
  }

  private struct Rounds {
    var started = 0
    var finished = 0
    var isRunning = false
    /// The latest failed round, and its error.
    var failed: (round: Int, error: SystemError)?
    var callers = 0
  }

  private let directories = Condition<[Key: Rounds]>([:])
  private let action: @Sendable (borrowing FileDescriptor) throws(SystemError) -> Void

  /// - Parameter action: performs a sync; tests count the calls.
  package init(
    _ action: @escaping @Sendable (borrowing FileDescriptor) throws(SystemError) -> Void = {
      directory throws(SystemError) in try directory.sync()
    }
  ) {
    self.action = action
  }

  /// Returns after a sync that began after this call. Blocks.
  package func sync(_ directory: borrowing FileDescriptor) throws(SystemError) {
    let status = try directory.status()
    let key = Key(device: status.st_dev, inode: status.st_ino)
    // A running sync may have missed this caller's rename, so the next one counts.
    let round = directories.withLock { directories in
      directories[key, default: Rounds()].callers += 1
      return directories[key, default: Rounds()].started + 1
    }
    let leads = directories.wait(
      until: { directories in
        guard let rounds = directories[key] else { return true }
        return rounds.finished >= round || !rounds.isRunning
      },
      then: { directories in
        guard directories[key, default: Rounds()].finished < round else { return false }
        directories[key]?.started += 1
        directories[key]?.isRunning = true
        return true
      })
    var failure: SystemError?
    if leads {
      do throws(SystemError) { try action(directory) } catch { failure = error }
      let failed = failure
      directories.withLock { directories in
        directories[key]?.finished = round
        directories[key]?.isRunning = false
        if let failed { directories[key]?.failed = (round, failed) }
      }
      directories.broadcast()
    }
    let shared: SystemError? = directories.withLock { directories in
      guard let rounds = directories[key] else { return nil }
      directories[key]?.callers -= 1
      if rounds.callers == 1 { directories[key] = nil }
      return rounds.failed.flatMap { $0.round >= round ? $0.error : nil }
    }
    // The leading caller knows its own round. For the others the failure of a later round counts too.
    if !leads { failure = shared }
    if let failure { throw failure }
  }

  /// The calls that have not returned yet, for all directories.
  var callers: Int {
    directories.withLock { $0.values.reduce(0) { $0 + $1.callers } }
  }
}
