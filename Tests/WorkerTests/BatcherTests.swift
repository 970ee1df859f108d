import Glibc
import ReelhaulSystem
import ReelhaulTelemetry
import TaskStore
import Testing

@testable import WorkerCore

@Suite struct BatcherTests {
  /// A write of a store. The test decides when it is answered.
  private actor Writes {
    private(set) var calls: [[Int]] = []
    private var results: [Result<Void, StoreError>]
    private let gate: Gate?

    init(_ results: [Result<Void, StoreError>] = [], gate: Gate? = nil) {
      self.results = results
      self.gate = gate
    }

    func write(_ items: [Int]) async throws -> [Int] {
      calls.append(items)
      await gate?.pass()
      if !results.isEmpty { try results.removeFirst().get() }
      if items.contains(13) { throw StoreError.failed("thirteen") }
      return items.map { $0 * 10 }
    }
  }

  /// Blocks all callers until it is opened.
  private actor Gate {
    private var isOpen = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func pass() async {
      await withCheckedContinuation { if isOpen { $0.resume() } else { waiting.append($0) } }
    }

    func open() {
      isOpen = true
      for continuation in waiting { continuation.resume() }
      waiting = []
    }
  }

  private let open = Fence(until: .now + .seconds(3600))

  private func withBatcher(
    _ writes: Writes, limit: Int = 100, log: Logger = quietLog,
    _ body: (Batcher<Int, Int>, EventLoop) async throws -> Void
  ) async throws {
    let loop = EventLoop(name: "batcher")
    let batcher = Batcher<Int, Int>("numbers", limit: limit, loop: loop, log: log) {
      try await writes.write($0)
    }
    try await body(batcher, loop)
    await Task.detached { loop.shutdown() }.value
  }

  @Test("an outage of the store is logged once at its start and once at its end")
  func anOutageIsToldOnce() async throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/log"
    let log = Logger(level: .info, descriptor: Glibc.open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600))
    let away = Result<Void, StoreError>.failure(.unavailable("away"))
    try await withBatcher(Writes([away, away, away, .success(()), away, away]), log: log) { batcher, loop in
      for item in 0..<2 {
        for task in submit(item..<item + 1, to: batcher, on: loop) {
          let answer = try await task.value
          #expect(answer == item * 10)
        }
      }
    }
    log.close()
    let lines = String(decoding: try FileDescriptor.open(path, O_RDONLY).contents(), as: UTF8.self)
    #expect(lines.split(separator: "\n").count == 2, "\(lines)")
  }

  private func submit(_ items: Range<Int>, to batcher: Batcher<Int, Int>, on loop: EventLoop) -> [Task<Int, any Error>]
  {
    items.map { item in loop.task { [open] in try await batcher.submit(item, fence: open) } }
  }

  @Test("every caller of a batch gets its own answer")
  func everyCallerGetsItsOwnAnswer() async throws {
    let writes = Writes()
    try await withBatcher(writes) { batcher, loop in
      let tasks = submit(20..<60, to: batcher, on: loop)
      for (item, task) in zip(20..<60, tasks) {
        let answer = try await task.value
        #expect(answer == item * 10)
      }
    }
    #expect(await writes.calls.flatMap(\.self).sorted() == Array(20..<60))
  }

  @Test("items that arrive during a call go together in the next one")
  func itemsDuringACallJoinTheNextOne() async throws {
    let gate = Gate()
    let writes = Writes(gate: gate)
    try await withBatcher(writes, limit: 30) { batcher, loop in
      let first = submit(20..<21, to: batcher, on: loop)
      while await writes.calls.isEmpty { await Task.yield() }
      let others = submit(21..<61, to: batcher, on: loop)
      // The loop runs its work in order: once this has run, all forty callers have submitted their items.
      _ = try await loop.task { await batcher.waitingCount }.value
      await gate.open()
      for task in first + others { _ = try await task.value }
    }
    #expect(await writes.calls.map(\.count) == [1, 30, 10])
  }

  @Test("items with patience wait for each other, and go with one that has none")
  func patientItemsGoTogether() async throws {
    let writes = Writes()
    try await withBatcher(writes) { [open] batcher, loop in
      let patient = (20..<60).map { item in
        loop.task { try await batcher.submit(item, fence: open, patience: .seconds(3600)) }
      }
      _ = try await loop.task { await batcher.waitingCount }.value
      #expect(await writes.calls.isEmpty)
      _ = try await submit(60..<61, to: batcher, on: loop)[0].value
      for (item, task) in zip(20..<60, patient) { #expect(try await task.value == item * 10) }
      #expect(await writes.calls.map(\.count) == [41])

      // One that waits alone is written in the end.
      let answer = try await batcher.submit(7, fence: open, patience: .milliseconds(20))
      #expect(answer == 70)
    }
  }

  @Test("only the refused item of a batch fails")
  func onlyTheRefusedItemFails() async throws {
    let writes = Writes()
    try await withBatcher(writes) { batcher, loop in
      let tasks = submit(0..<40, to: batcher, on: loop)
      for (item, task) in zip(0..<40, tasks) {
        if item == 13 {
          await #expect(throws: StoreError.failed("thirteen")) { try await task.value }
        } else {
          let answer = try await task.value
          #expect(answer == item * 10)
        }
      }
    }
  }

  @Test("a write is repeated while the store cannot be reached")
  func anUnreachableStoreIsAskedAgain() async throws {
    let away = Result<Void, StoreError>.failure(.unavailable("away"))
    let writes = Writes([away, away])
    try await withBatcher(writes) { batcher, loop in
      for task in submit(1..<2, to: batcher, on: loop) {
        let answer = try await task.value
        #expect(answer == 10)
      }
    }
    #expect(await writes.calls == [[1], [1], [1]])
  }

  @Test("nothing is written after the fence has closed")
  func nothingIsWrittenBehindAClosedFence() async throws {
    let writes = Writes()
    try await withBatcher(writes) { batcher, _ in
      let closed = Fence(until: .now)
      await #expect(throws: OwnershipLost()) { try await batcher.submit(1, fence: closed) }
    }
    #expect(await writes.calls == [])
  }

  @Test("a write is given up at the fence if the store stays away")
  func aStoreThatStaysAwayIsGivenUpAtTheFence() async throws {
    let writes = Writes(Array(repeating: .failure(.unavailable("away")), count: 10_000))
    try await withBatcher(writes) { batcher, _ in
      let fence = Fence(until: .now + .milliseconds(100))
      await #expect(throws: OwnershipLost()) { try await batcher.submit(1, fence: fence) }
    }
  }
}
