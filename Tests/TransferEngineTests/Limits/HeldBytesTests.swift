import ReelhaulSystem
import TestKit
import Testing

@testable import TransferEngine

extension HeldBytes.Holder {
  /// One of the roots that send to `server`.
  fileprivate static func root(_ server: String, _ root: String = "default") -> Self {
    Self(server: server, root: root)
  }
}

@Suite struct HeldBytesTests {
  @Test("uploads hold no more bytes than the limit, and get them in their order") func inOrder() async throws {
    let held = HeldBytes(limit: 200)
    let (first, others) = (Lock(false), Lock(false))
    let order = Lock<[Int]>([])
    let large = Task {
      let more = try await held.take(40, for: .root("host"))
      try await held.holding(50, for: .root("host")) {
        while !first.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(1)) }
      }
      withExtendedLifetime(more) {}
    }
    try await eventually("it is held") { held.held == 90 }
    var waiting: [Task<Void, any Error>] = []
    for (number, count) in [20, 5, 1000, 1000].enumerated() {
      waiting.append(
        Task {
          try await held.holding(Int64(count), for: .root("host")) {
            order.withLock { $0.append(number) }
            while number < 3, !others.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(1)) }
          }
        })
      try await eventually("it stands in line") { held.waiting == number + 1 }
    }
    #expect(order.withLock { $0 }.isEmpty, "a small one does not pass by a larger one")
    first.withLock { $0 = true }
    try await large.value
    try await eventually("three have theirs") { held.held == 75 }
    #expect(held.waiting == 1, "a host holds no more than half of the limit")
    others.withLock { $0 = true }
    for task in waiting { try await task.value }
    #expect(order.withLock { $0 }.last == 3 && held.held == 0)
  }

  @Test("who is canceled in the line leaves it, and those behind go on") func canceled() async throws {
    let held = HeldBytes(limit: 200)
    var kept: [HeldBytes.Portion] = []
    for (host, count) in [("a", 50), ("b", 50), ("c", 30)] {
      kept.append(try await held.take(Int64(count), for: .root(host)))
    }
    let gate = Lock(false)
    let first = Task {
      try await held.holding(50, for: .root("host")) {
        while !gate.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(1)) }
      }
    }
    try await eventually("it is held") { held.held == 180 }
    let large = Task { try await held.holding(50, for: .root("second")) {} }
    try await eventually("it waits") { held.waiting == 1 }
    let small = Task { try await held.holding(20, for: .root("third")) {} }
    try await eventually("it waits too") { held.waiting == 2 }
    large.cancel()
    await #expect(throws: CancellationError.self) { try await large.value }
    try await small.value
    gate.withLock { $0 = true }
    try await first.value
    withExtendedLifetime(kept) {}
    kept = []
    #expect(held.held == 0 && held.waiting == 0)
  }

  @Test("a portion of any size leaves something for another host") func large() async throws {
    let held = HeldBytes(limit: 100)
    var kept: [HeldBytes.Portion] = []
    for _ in 0..<2 { kept.append(try await held.take(1000, for: .root("slow"))) }
    #expect(held.takeNow(1, for: .root("slow")) == nil)
    kept.append(try await held.take(1000, for: .relays(to: "slow")))
    #expect(held.takeNow(1, for: .relays(to: "slow")) == nil)
    for root in ["second", "third"] { #expect(held.takeNow(1, for: .root("slow", root)) == nil) }
    kept.append(try #require(held.takeNow(1000, for: .root("other"))))
    #expect(kept.map(\.count) == [25, 25, 25, 25] && held.held == 100)
    withExtendedLifetime(kept) {}
  }

  /// A source of any bytes.
  private struct Source: UploadSource {
    var identity: UploadIdentity { UploadIdentity(size: .max, version: "1") }

    func read(_ range: Range<Int64>) async throws -> ArraySlice<UInt8> { [] }
    func check() async throws {}
  }

  @Test("a storage root that gives nothing back holds up no other one, and who waits stands in line") func roots()
    async throws
  {
    let held = HeldBytes(limit: 100)
    let ends = Lock(false)
    func hold(_ root: String, _ line: HostLine = HostLine()) -> Task<Void, any Error> {
      Task {
        try await HostLine.$current.withValue(line) {
          try await held.holding(0..<25, of: Source(), in: root, for: "host") { _ in
            while !ends.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(1)) }
          }
        }
      }
    }
    var tasks = [hold("a"), hold("a")]
    try await eventually("a holds its half") { held.held == 50 }
    let line = HostLine()
    tasks.append(hold("a", line))
    try await eventually("it stands in line") { line.place == HostLine.Place(server: "host", isInLine: true) }
    // Others that are busy make no difference.
    let others = try ["x", "y"].map { try #require(held.takeNow(12, for: .root($0))) }
    tasks.append(hold("b"))
    try await eventually("b has its own") { held.held == 99 && held.waiting == 1 }
    ends.withLock { $0 = true }
    for task in tasks { try await task.value }
    #expect(held.held == 24 && !line.place.isInLine)
    withExtendedLifetime(others) {}
  }

  @Test("a root that hangs with portions for many servers leaves a largest one for another root") func hungRoot() throws
  {
    let held = HeldBytes(limit: 1000)
    var kept: [HeldBytes.Portion] = []
    for server in ["a", "b", "c", "d"] {
      while let portion = held.takeNow(30, for: .root(server, "hangs")) { kept.append(portion) }
    }
    #expect(held.held == 480 + 240 + 30 + 30, "half, half of the rest, and one for each other server")
    let largest = try #require(held.takeNow(220, for: .root("e", "other")))
    let only = HeldBytes(limit: 1000, hasSeveralRoots: false)
    for server in ["a", "b", "c"] {
      while let portion = only.takeNow(30, for: .root(server)) { kept.append(portion) }
    }
    #expect(only.held == 480 + 240 + 120, "the only root leaves less for others")
    withExtendedLifetime((kept, largest)) {}
  }

  @Test("who is canceled before gets nothing") func canceledBefore() async throws {
    let held = HeldBytes(limit: 100)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await held.holding(200, for: .root("host")) {}
    }
    _ = await task.result
    #expect(held.held == 0 && held.waiting == 0)
  }

  @Test("many that take, wait and are canceled never exceed the limit, and nothing is lost", .timeLimit(.minutes(1)))
  func many() async {
    let held = HeldBytes(limit: 100)
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<2000 {
        group.addTask {
          let taking = Task {
            try await held.holding(Int64(number % 25 + 1), for: .root("host \(number % 7)")) {
              #expect(held.held <= 100)
              await Task.yield()
            }
          }
          if number % 3 == 0 { await Task.yield() }
          if number % 2 == 0 { taking.cancel() }
          _ = await taking.result
        }
      }
    }
    #expect(held.held == 0 && held.waiting == 0)
  }

  @Test("one host keeps no more than half of what the others leave, and holds up no other") func shares() async throws {
    let held = HeldBytes(limit: 100)
    var kept: [HeldBytes.Portion] = []
    for _ in 0..<5 { kept.append(try await held.take(10, for: .root("hangs"))) }
    let sixth = Task { _ = try await held.take(10, for: .root("hangs")) }
    try await eventually("it waits for its own host") { held.waiting == 1 }
    for _ in 0..<2 { kept.append(try await held.take(10, for: .root("slow"))) }
    #expect(held.takeNow(10, for: .root("slow")) == nil, "half of what is left")
    let large = try #require(held.takeNow(25, for: .root("other")), "one is always allowed")
    #expect(held.held == 95 && held.takeNow(6, for: .root("none")) == nil)
    large.shrink(to: 20)
    #expect(held.held == 90)
    let fourth = Task { try await held.take(20, for: .root("fourth")) }
    try await eventually("it waits for others") { held.waiting == 2 }
    #expect(held.takeNow(1, for: .root("fifth")) == nil, "a small one does not pass by a larger one")
    kept.removeFirst()
    let portion = try await fourth.value
    #expect(held.held == 100 && held.waiting == 1 && portion.count == 20)
    kept = []
    try await sixth.value
    withExtendedLifetime((large, portion)) {}
  }
}
