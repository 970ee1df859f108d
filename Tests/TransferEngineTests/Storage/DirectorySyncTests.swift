import Glibc
import ReelhaulSystem
import TestKit
import Testing

@testable import TransferEngine

@Suite struct DirectorySyncTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  /// The result of one caller.
  enum Result: Hashable { case synced, failed }

  @Test("callers share the sync that follows the running one", arguments: [false, true])
  func callersShareTheSyncAfterTheOneThatRuns(fails: Bool) throws {
    let running = Condition(0)
    let release = Condition(false)
    let sync = DirectorySync { _ throws(SystemError) in
      let round = running.withLock { round in
        round += 1
        return round
      }
      running.broadcast()
      release.wait(until: { $0 }, then: { _ in })
      if fails && round == 2 { throw SystemError(errno: EIO, operation: "fsync") }
    }
    let results = Lock<[Result]>([])
    let path = directory.path
    let call: @Sendable () -> Void = {
      do {
        try sync.sync(FileDescriptor.open(path, O_RDONLY | O_DIRECTORY))
        results.withLock { $0.append(.synced) }
      } catch {
        results.withLock { $0.append(.failed) }
      }
    }
    let first = Thread(name: "first", call)
    running.wait(until: { $0 == 1 }, then: { _ in })
    let others = (0..<5).map { Thread(name: "other-\($0)", call) }
    while sync.callers < 6 { sched_yield() }
    release.withLock { $0 = true }
    release.broadcast()
    first.join()
    for thread in others { thread.join() }
    #expect(running.withLock { $0 } == 2)
    #expect(results.withLock { $0.count { $0 == .failed } } == (fails ? 5 : 0))
    #expect(sync.callers == 0)
  }

  @Test("syncs of different directories do not wait for each other")
  func differentDirectoriesDoNotWaitForEachOther() throws {
    let other = try TemporaryDirectory()
    let release = Condition(false)
    let blocked = Condition(false)
    let path = directory.path
    let sync = DirectorySync { directory throws(SystemError) in
      guard directory.path == path else { return }
      blocked.withLock { $0 = true }
      blocked.broadcast()
      release.wait(until: { $0 }, then: { _ in })
    }
    let thread = Thread(name: "blocked") {
      _ = try? sync.sync(FileDescriptor.open(path, O_RDONLY | O_DIRECTORY))
    }
    blocked.wait(until: { $0 }, then: { _ in })
    try sync.sync(FileDescriptor.open(other.path, O_RDONLY | O_DIRECTORY))
    release.withLock { $0 = true }
    release.broadcast()
    thread.join()
  }
}
