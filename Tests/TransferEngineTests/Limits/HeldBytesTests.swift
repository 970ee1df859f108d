import ReelhaulSystem
import TestKit
import Testing

@testable import TransferEngine

@Suite struct HeldBytesTests {
  @Test("uploads hold no more bytes than the limit, and get them in their order") func inOrder() async throws {
    let held = HeldBytes(limit: 100)
    let (first, others) = (Lock(false), Lock(false))
    let order = Lock<[Int]>([])
    let large = Task {
      try await held.holding(90) { while !first.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(1)) } }
    }
    try await eventually("it is held") { held.held == 90 }
    var waiting: [Task<Void, any Error>] = []
    for (number, count) in [20, 5, 1000].enumerated() {
      waiting.append(
        Task {
          try await held.holding(Int64(count)) {
            order.withLock { $0.append(number) }
            while number < 2, !others.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(1)) }
          }
        })
      try await eventually("it stands in line") { held.waiting == number + 1 }
    }
    #expect(order.withLock { $0 }.isEmpty, "a small one does not pass by a larger one")
    first.withLock { $0 = true }
    try await large.value
    try await eventually("both have theirs") { held.held == 25 }
    #expect(held.waiting == 1, "more than the limit is held alone")
    others.withLock { $0 = true }
    for task in waiting { try await task.value }
    #expect(order.withLock { $0 }.last == 2 && held.held == 0)
  }

  @Test("who is canceled in the line leaves it, and those behind go on") func canceled() async throws {
    let held = HeldBytes(limit: 100)
    let gate = Lock(false)
    let first = Task {
      try await held.holding(60) { while !gate.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(1)) } }
    }
    try await eventually("it is held") { held.held == 60 }
    let large = Task { try await held.holding(100) {} }
    try await eventually("it waits") { held.waiting == 1 }
    let small = Task { try await held.holding(40) {} }
    try await eventually("it waits too") { held.waiting == 2 }
    large.cancel()
    await #expect(throws: CancellationError.self) { try await large.value }
    try await small.value
    gate.withLock { $0 = true }
    try await first.value
    #expect(held.held == 0 && held.waiting == 0)
  }

  @Test("who is canceled before gets nothing") func canceledBefore() async throws {
    let held = HeldBytes(limit: 100)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await held.holding(200) {}
    }
    _ = await task.result
    #expect(held.held == 0 && held.waiting == 0)
  }
}
