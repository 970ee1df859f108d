import Digest
import System
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

  /// Waits for the running job, then syncs the file and hashes what is left up to `size`.
  func finish(size: Int64) async throws -> FileDigests {
    isClosed = true
    await running.opened()
    if let failure { throw failure }
    let rest = hashed..<size
    return try await pool.run { [state, file] in
      try file.sync()
      try state.update(file, rest)
      return state.finish()
    }
  }

  // @unchecked: used by one job at a time; the loop's turn between two jobs orders them.
  private final class State: @unchecked Sendable {
    private var sha256 = DigestState(.sha256)
    private var md5 = DigestState(.md5)
    private let withMD5: Bool

    init(withMD5: Bool) {
      self.withMD5 = withMD5
    }

    func update(_ file: StagingFile, _ range: Range<Int64>) throws(StorageError) {
      guard !range.isEmpty else { return }
      let buffer = UnsafeMutableRawBufferPointer.allocate(
        byteCount: Int(min(Int64(range.count), 1 << 20)), alignment: 64)
      defer { buffer.deallocate() }
      var next = range.lowerBound
      while next < range.upperBound {
        let wanted = min(Int64(buffer.count), range.upperBound - next)
        let count = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(wanted)]), at: next)
        guard count > 0 else { throw StorageError(.stagingShort, "the staging file \(file.name) ends at \(next)") }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
        sha256.update(bytes)
        if withMD5 { md5.update(bytes) }
        next += Int64(count)
      }
    }

    func finish() -> FileDigests {
      FileDigests(sha256: sha256.finish(), md5: withMD5 ? md5.finish() : nil)
    }
  }
}
