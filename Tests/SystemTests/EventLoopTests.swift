import Glibc
import Testing

@testable import ReelhaulSystem

@Suite struct EventLoopTests {
  private actor Pinned {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private(set) var count = 0

    init(loop: EventLoop) { self.loop = loop }

    func add() -> Bool {
      count += 1
      return loop.onLoop
    }
  }

  /// Runs `body` with a loop and ends the loop, which traps if a handle is still open.
  private func withLoop<Result: Sendable>(_ body: @Sendable (EventLoop) async throws -> Result) async throws -> Result {
    let loop = EventLoop(name: "test")
    let result: Swift.Result<Result, any Error>
    do { result = .success(try await body(loop)) } catch { result = .failure(error) }
    await Task.detached { loop.shutdown() }.value
    return try result.get()
  }

  @Test("a sleep never ends before its duration has passed")
  func noTimerIsEarly() async throws {
    try await withLoop { loop in
      for microseconds in stride(from: 100, to: 10_000, by: 170) {
        let duration = Duration.microseconds(microseconds)
        let before = Clocks.boottime()
        try await loop.sleep(for: duration)
        #expect(Clocks.boottime() - before >= duration.nanoseconds)
      }
    }
  }

  @Test("a task of the loop stays on the loop across suspensions")
  func aTaskOfTheLoopStaysOnItAcrossSuspensions() async throws {
    try await withLoop { loop in
      let stayed = try await loop.task {
        var stayed = loop.onLoop
        for _ in 0..<100 {
          await Task.yield()
          stayed = stayed && loop.onLoop
        }
        try await loop.sleep(for: .milliseconds(1))
        return stayed && loop.onLoop
      }.value
      #expect(stayed)
    }
  }

  @Test("a call that comes while a task of another executor goes to sleep wakes it", .timeLimit(.minutes(1)))
  func noCallIsLost() async throws {
    try await withLoop { loop in
      for _ in 0..<20 {
        let wakeup = Wakeup(loop: loop)
        let (isHeld, isQueued) = (Lock(true), Lock(0))
        loop.execute { while isHeld.withLock({ $0 }) { usleep(100) } }
        // Both are in the loop's queue, in this order, when it goes on.
        let sleeper = Task.detached {
          isQueued.withLock { $0 += 1 }
          await wakeup.sleep(until: nil)
        }
        while isQueued.withLock({ $0 }) < 1 { usleep(100) }
        usleep(1000)
        let caller = Task.detached { await wakeup.call() }
        usleep(1000)
        isHeld.withLock { $0 = false }
        await sleeper.value
        await caller.value
      }
    }
  }

  @Test("how a task ends is told, unless it is too late or the caller is canceled", .timeLimit(.minutes(1)))
  func results() async throws {
    struct Wrong: Error {}
    try await withLoop { loop in
      let seven = loop.task { 7 }
      for deadline in [nil, BootInstant.now + .seconds(3600)] {
        let value = try await loop.result(of: seven, by: deadline)?.get()
        #expect(value == 7)
      }
      let wrong = await loop.result(of: loop.task { () throws in throw Wrong() }, by: nil)
      #expect(throws: Wrong.self) { try wrong?.get() }
      let slow = loop.task { try await loop.sleep(for: .seconds(3600)) }
      let late = await loop.result(of: slow, by: .now + .milliseconds(10))
      let caller = Task { await loop.result(of: slow, by: nil) == nil }
      caller.cancel()
      let isLeft = await caller.value
      #expect(late == nil && isLeft && !slow.isCancelled)
      slow.cancel()
      _ = await slow.result
    }
  }

  @Test("patient tasks come after the others, and keep neither timers nor each other from running")
  func patience() async throws {
    try await withLoop { loop in
      let order = Lock<[String]>([])
      let tasks = try await loop.task {
        let patient = (0..<3).map { _ in
          loop.task(priority: .utility) { order.withLock { $0.append("patient") } }
        }
        return patient + [loop.task { order.withLock { $0.append("other") } }]
      }.value
      for task in tasks { try await task.value }
      #expect(order.withLock { $0 } == ["other", "patient", "patient", "patient"])

      let isOver = Lock(false)
      let busy = (0..<2).map { _ in
        loop.task(priority: .utility) {
          var rounds = 0
          while !isOver.withLock({ $0 }) {
            rounds += 1
            await Task.yield()
          }
          return rounds
        }
      }
      try await loop.task { try await loop.sleep(for: .milliseconds(50)) }.value
      isOver.withLock { $0 = true }
      for task in busy { #expect(try await task.value > 0) }
    }
  }

  @Test("an actor bound to the loop runs on the loop")
  func anActorPinnedToTheLoopRunsThere() async throws {
    try await withLoop { loop in
      let actor = Pinned(loop: loop)
      await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<1000 { group.addTask { await actor.add() } }
        for await onLoop in group { #expect(onLoop) }
      }
      #expect(await actor.count == 1000)
    }
  }

  @Test("closures run in the order in which they were enqueued")
  func closuresRunInTheOrderGiven() async throws {
    try await withLoop { loop in
      let seen = Lock<[Int]>([])
      await withCheckedContinuation { done in
        for index in 0..<1000 { loop.execute { seen.withLock { $0.append(index) } } }
        loop.execute { done.resume() }
      }
      #expect(seen.withLock { $0 } == Array(0..<1000))
    }
  }

  @Test("timers with slack fire at common moments, never early and never later than the slack")
  func slack() {
    for now in [0, 1, 49, 50, 51, 12_345] as [UInt64] {
      for after in [0, 1, 49, 50, 1000] as [UInt64] {
        let delay = LoopTimer.delay(.milliseconds(Int(after)), slack: 50, now: now)
        #expect((now + delay) % 50 == 0)
        #expect(delay >= after && delay <= after + 51)
        #expect(LoopTimer.delay(.milliseconds(Int(after)), slack: 0, now: now) == (after == 0 ? 0 : after + 1))
      }
    }
  }

  @Test("a timer may be set for any time") func farTimers() async throws {
    try await withLoop { loop in
      try await loop.task {
        for time in [Duration.seconds(Int64.max), .seconds(1 << 50), .seconds(Int64.min)] {
          loop.timer(after: time) {}.cancel()
        }
      }.value
    }
  }

  @Test("a loop that ends while others wake it does not take its handles away from them") func endsBesideWork() async {
    for _ in 0..<3000 {
      let loop = EventLoop(name: "ending")
      let waker = Thread(name: "waker") { for _ in 0..<20 { loop.execute {} } }
      loop.shutdown()
      waker.join()
    }
  }

  @Test("a repeating timer fires until it is canceled")
  func aTimerRepeatsUntilCanceled() async throws {
    try await withLoop { loop in
      let fired = Lock(0)
      await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
        loop.execute {
          let timer = Lock<LoopTimer?>(nil)
          let started = loop.timer(after: .zero, every: .milliseconds(1)) {
            let count = fired.withLock {
              $0 += 1
              return $0
            }
            if count == 3 {
              timer.withLock { $0?.cancel() }
              done.resume()
            }
          }
          timer.withLock { $0 = started }
        }
      }
      #expect(fired.withLock { $0 } == 3)
    }
  }

  @Test("cancellation ends a sleep at once")
  func cancellationEndsASleepAtOnce() async throws {
    try await withLoop { loop in
      let sleeper = loop.task { try await loop.sleep(for: .seconds(3600)) }
      sleeper.cancel()
      await #expect(throws: CancellationError.self) { try await sleeper.value }
    }
  }

  @Test("a poll reports that a pipe has become readable")
  func aPollReportsWhatCanBeRead() async throws {
    let pipe = try Pipe()
    try await withLoop { loop in
      let watching = Lock<LoopPoll?>(nil)
      let events = await withCheckedContinuation { (done: CheckedContinuation<PollEvents, Never>) in
        loop.execute {
          let poll = try? LoopPoll(loop: loop, fd: pipe.reading.raw) { events in
            watching.withLock { $0?.close() }
            done.resume(returning: events)
          }
          watching.withLock { $0 = poll }
          poll?.watch(.readable)
          send(1, to: pipe.writing.raw)
        }
      }
      #expect(events.contains(.readable))
    }
  }

  @Test("watching a plain file throws an error")
  func aPlainFileCannotBeWatched() async throws {
    try await withLoop { loop in
      let directory = try TemporaryDirectory()
      let file = try FileDescriptor.open("\(directory.path)/plain", O_RDWR | O_CREAT)
      let raw = file.raw
      await #expect(throws: SystemError.self) {
        try await loop.task { _ = try LoopPoll(loop: loop, fd: raw) { _ in } }.value
      }
      withExtendedLifetime(file) {}
    }
  }

  @Test("a signal reaches its handler on the loop")
  func aSignalReachesItsHandler() async throws {
    try await withLoop { loop in
      let watching = Lock<LoopSignal?>(nil)
      await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
        loop.execute {
          let signal = LoopSignal(loop: loop, signal: SIGUSR2) {
            watching.withLock { $0?.close() }
            done.resume()
          }
          watching.withLock { $0 = signal }
          kill(getpid(), SIGUSR2)
        }
      }
    }
  }
}
