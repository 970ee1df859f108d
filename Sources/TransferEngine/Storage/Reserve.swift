import Glibc
import ReelhaulSystem

/// Hands out a volume's free space, to one file at a time among all processes that use the volume.
///
/// Space is taken by allocating it, so what is promised is no longer free and cannot be promised twice, and a promise
/// ends with its file. Where the file system cannot allocate, the file is made as long as it will be: what it still
/// lacks in blocks is its promise, and the staging directory is the ledger.
final class Reserve: Sendable {
  private struct State {
    /// The file system allocates blocks; until it is found that it does not.
    var allocates: Bool
    /// Until when the lock is not waited for.
    var distrusted: ContinuousClock.Instant?
  }

  /// How long a lock that could not be had is not waited for again.
  private static let distrust: Duration = .seconds(60)

  /// The lock among processes.
  private let file: FileDescriptor
  private let policy: ReservePolicy
  /// How long the lock is waited for.
  private let patience: Duration
  /// The lock among this process's threads, for which `file` has only one.
  private let state: Lock<State>

  init(
    _ file: consuming FileDescriptor, policy: ReservePolicy, allocates: Bool = true, patience: Duration = .seconds(5)
  ) {
    self.file = file
    self.policy = policy
    self.patience = patience
    state = Lock(State(allocates: allocates))
  }

  /// Makes `staged`, a file in the directory `staging`, `size` bytes long, on blocks of its own where possible.
  /// ENOSPC also where the policy forbids it; EFBIG where even the empty volume would be too small. Blocks.
  func take(
    _ size: Int64, for staged: borrowing FileDescriptor, named name: String, in staging: borrowing FileDescriptor
  ) throws(SystemError) {
    let failure = state.withLock { state -> SystemError? in
      do throws(SystemError) {
        try take(size, for: staged, named: name, in: staging, &state)
        return nil
      } catch {
        return error
      }
    }
    if let failure { throw failure }
  }

  private func take(
    _ size: Int64, for staged: borrowing FileDescriptor, named name: String, in staging: borrowing FileDescriptor,
    _ state: inout State
  ) throws(SystemError) {
    let isLocked = try lock(&state)
    defer { if isLocked { file.unlock() } }
    let status = try staged.status()
    guard status.st_size < size else { return }
    let held = min(size, Self.allocated(status))
    try check(size, held: held, promised: state.allocates ? 0 : promised(besides: name, in: staging), staging)
    if state.allocates {
      do throws(SystemError) {
        return try staged.allocate(0..<size)
      } catch  where error.errno == EOPNOTSUPP || error.errno == ENOSYS {
        state.allocates = false
        try check(size, held: held, promised: promised(besides: name, in: staging), staging)
      }
    }
    try staged.truncate(to: size)
  }

  /// False where the lock could not be had: a process that is frozen while it holds it must not stop all others, so it is
  /// passed by. What may come of it is that one space is promised twice, and that one of the two files waits for room.
  private func lock(_ state: inout State) throws(SystemError) -> Bool {
    let start = ContinuousClock.now
    let mayWait = state.distrusted.map { $0 < start } ?? true
    while try !file.tryLock() {
      let waited = ContinuousClock.now - start
      guard mayWait, waited < patience else {
        if mayWait { state.distrusted = start + Self.distrust }
        return false
      }
      usleep(waited < .milliseconds(20) ? 100 : 10_000)
    }
    state.distrusted = nil
    return true
  }

  private func check(
    _ size: Int64, held: Int64, promised: Int64, _ staging: borrowing FileDescriptor
  ) throws(SystemError) {
    let (free, total) = try staging.space()
    if let total, size > total {
      throw SystemError(errno: EFBIG, operation: "reserve \(size) bytes on a volume of \(total) bytes")
    }
    let limit = policy.limit(free: free, promised: promised, held: held)
    guard size <= limit else {
      throw SystemError(
        errno: ENOSPC,
        operation: "reserve \(size) bytes (\(free) free, \(promised) promised, at most \(policy.share) % for a task)")
    }
  }

  /// What the files of other tasks will still fill.
  private func promised(besides own: String, in staging: borrowing FileDescriptor) throws(SystemError) -> Int64 {
    var sum: Int64 = 0
    for name in try staging.entries() where name != own {
      // It may be published or discarded meanwhile, and then promises nothing.
      guard let status = try? staging.status(of: name) else { continue }
      sum += max(0, Int64(status.st_size) - Self.allocated(status))
    }
    return sum
  }

  private static func allocated(_ status: stat) -> Int64 {
    Int64(status.st_blocks) * 512
  }
}
