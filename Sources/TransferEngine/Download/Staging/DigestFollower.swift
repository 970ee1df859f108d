import ReelhaulSystem
import TaskCore

/// Hashes a staging file behind its contiguous prefix, through the page cache, so that little is left at the end.
// @unchecked: the loop's, but for `state`, which the one running job uses.
final class DigestFollower: @unchecked Sendable {
  /// Bytes a job hashes at most, so that the threads are shared fairly.
  static let slice: Int64 = 32 << 20
  /// A job for less is not worth its thread hop.
  static let least: Int64 = 8 << 20

  private let pool: BlockingPool
  private let loop: EventLoop
  private let file: StagingFile
  private let state: State
  private var hashed: Int64 = 0
  /// Closed while a job runs.
  private let running = Latch()
  private var isClosed = false
  /// Of a job: the state is of no use any more.
  private var failure: (any Error)?

  init(file: StagingFile, withMD5: Bool, pool: BlockingPool, loop: EventLoop) {
    self.file = file
    self.pool = pool
    self.loop = loop
    state = State(withMD5: withMD5)
  }

  /// The bytes up to `prefix` can be read now.
  func follow(_ prefix: Int64) {
    guard !running.isClosed, !isClosed, prefix - hashed >= Self.least else { return }
    running.close()
    let range = hashed..<min(prefix, hashed + Self.slice)
    loop.task { [self] in
      do {
        try await pool.run { [state, file] in try state.update(file, range) }
        hashed = range.upperBound
      } catch {
        failure = error
        isClosed = true
      }
      running.open()
      follow(prefix)
    }
  }

  /// No more jobs; those that run end by themselves.
  func close() {
    isClosed = true
  }

  /// Waits for the running job, hashes what is left up to `size`, which may be all of a file that was resumed, and syncs.
  /// `goesOn` is asked before each slice, on the loop; throws `CancellationError` where it says no.
  func finish(size: Int64, while goesOn: () -> Bool) async throws -> FileDigests {
    isClosed = true
    await running.opened()
    if let failure { throw failure }
    while true {
      guard goesOn() else { throw CancellationError() }
      let range = hashed..<min(size, hashed + Self.slice)
      let digests = try await pool.run { [state, file] () throws -> FileDigests? in
        try state.update(file, range)
        guard range.upperBound == size else { return nil }
        try file.sync()
        return state.finish()
      }
      if let digests { return digests }
      hashed = range.upperBound
    }
  }

  // @unchecked: used by one job at a time; the loop's turn between two jobs orders them.
  private final class State: @unchecked Sendable {
    private var hasher: FileHasher

    init(withMD5: Bool) {
      hasher = FileHasher(withMD5: withMD5)
    }

    func update(_ file: StagingFile, _ range: Range<Int64>) throws(StorageError) {
      let end = try file.attempt { file throws(SystemError) in try hasher.read(file, range) }
      guard end == range.upperBound else {
        throw StorageError(.stagingShort, "the staging file \(file.name) ends at \(end)")
      }
    }

    func finish() -> FileDigests { hasher.finish() }
  }
}
