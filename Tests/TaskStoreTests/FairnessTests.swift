import TaskCore
import TaskStore
import Testing

/// Limits and the shares of queues.
@Suite struct FairnessTests {
  @Test("queues share claims by their weights", arguments: StoreKind.allCases)
  func queuesShareByWeight(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      for weight in [1, 3] {
        _ = try await fixture.store.apply((0..<1000).map { _ in .submit(.noop(queue: "weight\(weight)")) })
        try await fixture.store.setWeight(queue: "weight\(weight)", to: Double(weight))
      }
      var heavy = 0
      for _ in 0..<10 {
        let claims = try await fixture.store.claim(worker, limit: 100)
        heavy += claims.count { $0.spec.queue == "weight3" }
      }
      #expect((700...800).contains(heavy), "\(heavy) of 1000")
    }
  }

  @Test("a queue that gets a larger weight has its new share at once", arguments: StoreKind.allCases)
  func aLargerWeight(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      try await fixture.store.setWeight(queue: "slow", to: 0.01)
      _ = try await fixture.store.apply((0..<300).flatMap { _ in ["slow", "busy"].map { .submit(.noop(queue: $0)) } })
      var slow = 0
      while slow == 0 {
        slow = try await fixture.store.claim(worker, limit: 1).count { $0.spec.queue == "slow" }
      }
      // It has just had a task, and would wait for a hundred of the other.
      try await fixture.store.setWeight(queue: "slow", to: 1)
      let claims = try await fixture.store.claim(worker, limit: 20)
      #expect((9...11).contains(claims.count { $0.spec.queue == "slow" }), "\(claims.map(\.spec.queue))")
    }
  }

  @Test("a small queue does not wait for a big one", arguments: StoreKind.allCases)
  func aSmallQueueDoesNotWaitForABigOne(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      _ = try await fixture.store.apply((0..<1000).map { _ in .submit(.noop(queue: "big")) })
      _ = try await fixture.store.claim(worker, limit: 300)
      _ = try await fixture.store.apply((0..<5).map { _ in .submit(.noop(queue: "small")) })
      let claims = try await fixture.store.claim(worker, limit: 100)
      #expect(claims.count == 100)
      #expect(claims.count { $0.spec.queue == "small" } == 5)
    }
  }

  @Test("limits are listed with their use", arguments: StoreKind.allCases)
  func limitsAreTold(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      #expect(try await store.limits() == [LimitUse(scope: .total, name: "")])
      let worker = try await fixture.worker()
      try await store.setLimit(.host, name: "h", to: 1)
      try await store.setLimit(.storage, name: "nas", to: 0)
      try await store.setLimit(.total, name: "", to: 9)
      try await store.setWeight(queue: "slow", to: 0.5)
      try await fixture.submit(.noop(queue: "q", host: "h"), .noop(queue: "q", host: "h"))
      #expect(try await store.claim(worker, limit: 10).count == 1)
      let expected = [
        LimitUse(scope: .total, name: "", running: 1, limit: 9), LimitUse(scope: .kind, name: "noop", running: 1),
        LimitUse(scope: .queue, name: "q", running: 1, weight: 1), LimitUse(scope: .queue, name: "slow", weight: 0.5),
        LimitUse(scope: .host, name: "h", running: 1, limit: 1), LimitUse(scope: .storage, name: "nas", limit: 0),
      ]
      #expect(try await store.limits() == expected)
      #expect(try await store.limits().filter(\.isReached).map(\.name) == ["h", "nas"])
      try await store.setLimit(.storage, name: "nas", to: nil)
      try await store.setWeight(queue: "slow", to: 1)
      #expect(try await store.limits() == expected.filter { $0.running > 0 })
    }
  }

  @Test("a limit of every scope holds", arguments: StoreKind.allCases)
  func limitsHold(_ kind: StoreKind) async throws {
    for (scope, name) in [(LimitScope.total, ""), (.kind, "noop"), (.queue, "q"), (.host, "h"), (.storage, "")] {
      try await withStore(kind) { fixture in
        let worker = try await fixture.worker()
        try await fixture.store.setLimit(scope, name: name, to: 3)
        _ = try await fixture.store.apply((0..<20).map { _ in .submit(.noop(queue: "q", host: "h")) })
        let claims = try await fixture.store.claim(worker, limit: 10)
        try #require(claims.count == 3)
        #expect(try await fixture.store.claim(worker, limit: 10).isEmpty)
        try await fixture.settle(claims[0], .success)
        #expect(try await fixture.store.claim(worker, limit: 10).count == 1)
        // The limit is lower than the number of running tasks: none is stopped, and none begins.
        try await fixture.store.setLimit(scope, name: name, to: 1)
        try await fixture.settle(claims[1], .success)
        #expect(try await fixture.store.claim(worker, limit: 10).isEmpty)
        try await fixture.store.setLimit(scope, name: name, to: nil)
        #expect(try await fixture.store.claim(worker, limit: 100).count == 16)
      }
    }
  }

  @Test("a host at its limit does not hold up other hosts", arguments: StoreKind.allCases)
  func aFullHostDoesNotHoldUpTheOthers(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      try await fixture.store.setLimit(.host, name: "full", to: 0)
      _ = try await fixture.store.apply((0..<50).map { _ in .submit(.noop(priority: 5, host: "full")) })
      _ = try await fixture.store.apply((0..<60).map { .submit(.noop(host: "host\($0)")) })
      #expect(try await fixture.store.claim(worker, limit: 100).count == 60)
    }
  }
}
