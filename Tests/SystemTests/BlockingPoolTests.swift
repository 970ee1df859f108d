import Foundation
import ReelhaulSystem
import TestKit
import Testing

@Suite struct BlockingPoolTests {
  @Test("the blocking pool releases a closure after it has run, even while others wait")
  func releasesFinishedClosures() async throws {
    final class Used: Sendable {}
    let loop = EventLoop(name: "test")
    let pool = BlockingPool(name: "test", threads: 1)
    let gate = Condition(0)
    let (started, begins) = AsyncStream.makeStream(of: Void.self)
    var used: Used? = Used()
    weak let kept = used
    // Tasks of one loop begin in order, so their calls do too.
    let calls = [
      loop.task { try await pool.run { gate.wait(until: { $0 > 0 }, then: { _ in }) } },
      loop.task { [used] in try await pool.run { [used] in _ = used } },
      loop.task {
        try await pool.run {
          begins.yield()
          gate.wait(until: { $0 > 1 }, then: { _ in })
        }
      },
      loop.task { try await pool.run {} },
    ]
    used = nil
    try await loop.task {}.value
    for number in 1...2 {
      gate.withLock { $0 = number }
      gate.broadcast()
      if number == 1 {
        for await _ in started { break }
        _ = await calls[1].result
        #expect(kept == nil)
      }
    }
    for call in calls { try await call.value }
    await Task.detached {
      pool.shutdown()
      loop.shutdown()
    }.value
  }

  @Test("the blocking pool starts another thread only for a call that finds none free, up to its limit")
  func threadsStartWhenNeeded() async throws {
    let name = "p\(UInt32.random(in: 0..<99_999_999))"
    func threads() throws -> Int {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count { thread in
        (try? String(contentsOfFile: "/proc/self/task/\(thread)/comm", encoding: .utf8))?.hasPrefix("\(name)-") == true
      }
    }
    let pool = BlockingPool(name: name, threads: 3)
    try await pool.run {}
    #expect(try threads() == 1)
    let gate = Condition(false)
    let calls = (0..<5).map { _ in Task { try await pool.run { gate.wait(until: { $0 }, then: { _ in }) } } }
    try await eventually("three calls run") { try threads() == 3 }
    gate.withLock { $0 = true }
    gate.broadcast()
    for call in calls { try await call.value }
    #expect(try threads() == 3)
    pool.shutdown()
    // The system may list a thread for a moment after its end.
    try await eventually("they have ended") { try threads() == 0 }
  }

  @Test("the blocking pool returns results and errors, and refuses calls after its end")
  func resultsAndErrorsComeBack() async throws {
    let pool = BlockingPool(name: "test", threads: 2)
    let sum = try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 1...100 { group.addTask { try await pool.run { number } } }
      return try await group.reduce(0, +)
    }
    #expect(sum == 5050)
    await #expect(throws: SystemError.self) {
      try await pool.run { throw SystemError(errno: ENOSPC, operation: "write") }
    }
    pool.shutdown()
    await #expect(throws: CancellationError.self) { try await pool.run {} }
  }

  @Test("a call whose caller is canceled while it waits for a thread is not made, and the caller does not wait")
  func canceledBefore() async throws {
    let pool = BlockingPool(name: "test", threads: 1)
    let (gate, made) = (Gate(), Lock(0))
    let first = Task { try await pool.runUnlessCanceled { gate.wait() } }
    await gate.reached()
    let second = Task { try await pool.runUnlessCanceled { made.withLock { $0 += 1 } } }
    second.cancel()
    await #expect(throws: CancellationError.self) { try await second.value }
    // One that has begun is waited for.
    first.cancel()
    gate.open()
    try await first.value
    try await pool.runUnlessCanceled { made.withLock { $0 += 10 } }
    #expect(made.withLock { $0 } == 10)
    pool.shutdown()
    await #expect(throws: CancellationError.self) { try await pool.runUnlessCanceled {} }
  }

  @Test("a pool that ends still makes the calls that it has accepted")
  func endsWithItsWork() async throws {
    let pool = BlockingPool(name: "test", threads: 1)
    let (gate, made) = (Gate(), Lock(0))
    var accepted = [pool.submit { gate.wait() }]
    await gate.reached()
    for _ in 0..<2 { accepted.append(pool.submit { made.withLock { $0 += 1 } }) }
    pool.abandon()
    accepted.append(pool.submit { made.withLock { $0 += 10 } })
    #expect(accepted == [true, true, true, false])
    gate.open()
    try await eventually("both are made", within: .seconds(20)) { made.withLock { $0 } == 2 }
  }

  /// Holds a thread until it is opened.
  private final class Gate: Sendable {
    private let isOpen = Condition(false)
    private let begun = Awaited<Void>()

    func wait() {
      begun.settle(.success(()))
      isOpen.wait(until: { $0 }, then: { _ in })
    }

    func reached() async { try? await begun.value }

    func open() {
      isOpen.withLock { $0 = true }
      isOpen.broadcast()
    }
  }
}
