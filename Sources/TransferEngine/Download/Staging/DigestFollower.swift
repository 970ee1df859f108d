import ReelhaulSystem
import TaskCore

/// Hashes the contiguous prefix of a staging file while it grows, through the page cache, so that little is left at the
/// end.
// @unchecked: used only on its loop, except `state`, which only the one running job uses.
final class DigestFollower: @unchecked Sendable {
  /// The most bytes that one job hashes, so that downloads share the threads fairly.
  static let slice: Int64 = 32 << 20
  /// The fewest bytes that are worth a job and its change of threads.
  static let least: Int64 = 8 << 20
  /// The most bytes that a thread which waits for the device may hash by the way.
  private static let small: Int64 = 1 << 20

  private let digests: BlockingPool
  private let files: BlockingPool
  private let loop: EventLoop
  private let file: StagingFile
  private let state: State
  private var hashed: Int64 = 0
  /// Closed while a job runs.
  private let running = Latch()
  private var isClosed = false
  /// The error of a job. The digest state is invalid after it.
  private var failure: (any Error)?

  /// - Parameters:
  ///   - digests: hashes what a core is needed for.
  ///   - files: waits for the device.
  init(file: StagingFile, withMD5: Bool, digests: BlockingPool, files: BlockingPool, loop: EventLoop) {
    self.file = file
    self.digests = digests
    self.files = files
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
        try await digests.run { [state, file] in try state.update(file, range) }
        hashed = range.upperBound
      } catch {
        failure = error
        isClosed = true
      }
      running.open()
      follow(prefix)
    }
  }

  /// Starts no more jobs. A running job ends by itself.
  func close() {
    isClosed = true
  }

  /// Waits for the running job, hashes the rest up to `size` (perhaps the whole file, if it was resumed) and syncs.
  /// Calls `goesOn` on the loop before each slice, and throws `CancellationError` if that returns false.
  func finish(size: Int64, while goesOn: () -> Bool) async throws -> FileDigests {
    isClosed = true
    await running.opened()
    if let failure { throw failure }
    while size - hashed > Self.small {
      guard goesOn() else { throw CancellationError() }
      let range = hashed..<min(size, hashed + Self.slice)
      try await digests.run { [state, file] in try state.update(file, range) }
      hashed = range.upperBound
    }
    guard goesOn() else { throw CancellationError() }
    let rest = hashed..<size
    return try await files.run { [state, file] in
      try state.update(file, rest)
      try file.sync()
      return state.finish()
    }
  }

  // @unchecked: only one job at a time uses it; the loop starts the next one after the last one has ended.
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
