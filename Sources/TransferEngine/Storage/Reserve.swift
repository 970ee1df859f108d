import Glibc
import ReelhaulSystem
import Synchronization

/// Assigns a volume's free space, to one file at a time among all processes that use the volume.
///
/// Space is reserved by allocating blocks. So reserved space is no longer free and cannot be promised twice, and the
/// reservation ends with its file. If the file system cannot allocate blocks, the file gets its final length: the
/// blocks that it lacks are its promise, and the staging directory is the ledger.
final class Reserve: Sendable {
  private struct State {
    /// Until this time, no call waits for the lock.
    var distrusted: BootInstant?
  }

  /// After a wait for the lock has failed, no call waits for it again during this time.
  private static let distrust: Duration = .seconds(60)

  /// The lock between processes.
  private let file: FileDescriptor
  private let policy: ReservePolicy
  /// How long a call waits for the lock.
  private let patience: Duration
  /// The lock between this process's threads, because they share the lock of `file`.
  private let state: Lock<State>
  /// Whether the file system allocates blocks. True until an allocation is refused as unsupported.
  private let allocates: Atomic<Bool>

  init(
    _ file: consuming FileDescriptor, policy: ReservePolicy, allocates: Bool = true, patience: Duration = .seconds(5)
  ) {
    self.file = file
    self.policy = policy
    self.patience = patience
    state = Lock(State())
    self.allocates = Atomic(allocates)
  }

  /// Makes `staged`, a file in the directory `staging`, `size` bytes long, with its own blocks if possible. ENOSPC
  /// also if the policy forbids it; EFBIG if it would forbid it even on the empty volume, or if a file that grows would
  /// be larger than that. Blocks.
  ///
  /// - Parameter isWritten: Whether the file may grow beyond `size` meanwhile: nothing may then be cut off.
  func take(
    _ size: Int64, for staged: borrowing FileDescriptor, named name: String, in staging: borrowing FileDescriptor,
    isWritten: Bool = false
  ) throws(SystemError) {
    let failure = state.withLock { state -> SystemError? in
      do throws(SystemError) {
        try take(size, for: staged, named: name, in: staging, isWritten, &state)
        return nil
      } catch {
        return error
      }
    }
    if let failure { throw failure }
  }

  private func take(
    _ size: Int64, for staged: borrowing FileDescriptor, named name: String, in staging: borrowing FileDescriptor,
    _ isWritten: Bool, _ state: inout State
  ) throws(SystemError) {
    let isLocked = try lock(&state)
    defer { if isLocked { file.unlock() } }
    let status = try staged.status()
    guard status.st_size < size else { return }
    let held = min(size, Self.allocated(status))
    try check(
      size, held: held, promised: allocates.load(ordering: .relaxed) ? 0 : promised(besides: name, in: staging),
      isWritten, staging)
    if allocates.load(ordering: .relaxed) {
      do throws(SystemError) {
        return try staged.allocate(0..<size)
      } catch  where error.errno == EOPNOTSUPP || error.errno == ENOSYS {
        allocates.store(false, ordering: .relaxed)
        try check(size, held: held, promised: promised(besides: name, in: staging), isWritten, staging)
      }
    }
    if !isWritten { try staged.truncate(to: size) }
  }

  /// Returns false if the lock was not free in time. Then the caller continues without it, because a process that is
  /// frozen while it holds the lock must not stop all others. In the worst case the same space is promised twice, and
  /// one of the two files waits for room.
  private func lock(_ state: inout State) throws(SystemError) -> Bool {
    let start = BootInstant.now
    let mayWait = state.distrusted.map { $0 < start } ?? true
    while try !file.tryLock() {
      let waited = BootInstant.now - start
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
    _ size: Int64, held: Int64, promised: Int64, _ isWritten: Bool, _ staging: borrowing FileDescriptor
  ) throws(SystemError) {
    let (free, total) = try staging.space()
    let rest = "\(policy.floor.bytes(of: total)) stay free, at most \(policy.share) % of the rest for a task"
    let wish = "reserve \(size) bytes\(total.map { " on a volume of \($0) bytes" } ?? "")"
    // The size that a growing file asks for is only a guess of what it needs.
    if let total, size > (isWritten ? total : policy.limit(free: total, total: total, promised: 0, held: 0)) {
      throw SystemError(errno: EFBIG, operation: "\(wish) (\(rest))")
    }
    let limit = policy.limit(free: free, total: total, promised: promised, held: held)
    guard size <= limit else {
      throw SystemError(errno: ENOSPC, operation: "\(wish) (\(free) free, \(promised) promised, \(rest))")
    }
  }

  /// The bytes that files of all tasks will still need, and that the file system counts as free. Waits for nobody, but
  /// may read a directory.
  func promised(in staging: borrowing FileDescriptor) throws(SystemError) -> Int64 {
    try allocates.load(ordering: .relaxed) ? 0 : promised(besides: nil, in: staging)
  }

  /// The bytes that files of other tasks will still need.
  private func promised(besides own: String?, in staging: borrowing FileDescriptor) throws(SystemError) -> Int64 {
    var sum: Int64 = 0
    for name in try staging.entries() where name != own {
      // The file may have been published or discarded since, and then needs nothing.
      guard let status = try? staging.status(of: name) else { continue }
      sum += max(0, Int64(status.st_size) - Self.allocated(status))
    }
    return sum
  }

  private static func allocated(_ status: stat) -> Int64 {
    Int64(status.st_blocks) * 512
  }
}
