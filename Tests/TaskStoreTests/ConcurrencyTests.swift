import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// Several workers, random commands and lost leases. At the end, every task is in its place.
@Suite struct ConcurrencyTests {
  @Test("with many workers at once, limits hold and no task runs twice", arguments: StoreKind.allCases)
  func capsHoldAndNothingRunsTwice(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let tasks = 300
      try await fixture.store.setLimit(.total, name: "", to: 25)
      try await fixture.store.setLimit(.host, name: "h0", to: 4)
      try await fixture.store.setLimit(.queue, name: "q1", to: 9)
      _ = try await fixture.store.apply((0..<tasks).map { .submit(.noop(queue: "q\($0 % 2)", host: "h\($0 % 3)")) })
      let ran = try await withThrowingTaskGroup(of: [UniqueID].self) { group in
        for _ in 0..<4 { group.addTask { try await finishAll(fixture) } }
        return try await group.reduce(into: []) { $0 += $1 }
      }
      #expect(ran.count == tasks && Set(ran).count == tasks)
    }
  }

  /// Claims and ends tasks until none is left. Returns the ids of the tasks that it ran.
  private func finishAll(_ fixture: StoreFixture) async throws -> [UniqueID] {
    let worker = try await fixture.worker()
    var ran: [UniqueID] = []
    while try await fixture.store.counts()[.succeeded, default: 0] < 300 {
      let claims = try await fixture.store.claim(worker, limit: 10)
      let running = try await fixture.store.tasks(TaskFilter(state: .running, limit: 1000))
      #expect(running.count <= 25)
      #expect(running.count { $0.spec.source == "https://h0/a" } <= 4)
      #expect(running.count { $0.spec.queue == "q1" } <= 9)
      let ends = claims.map { Settlement(taskID: $0.spec.id, epoch: $0.epoch, outcome: .success) }
      #expect(try await fixture.store.settle(ends).allSatisfy { $0 })
      ran += claims.map(\.spec.id)
    }
    return ran
  }

  @Test("after random concurrent calls every task is in its place", arguments: StoreKind.allCases)
  func everythingIsInItsPlaceAfterChaos(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let ids = (0..<120).map { _ in UniqueID.random() }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for seed in 0..<3 as Range<UInt64> {
          group.addTask { try await command(fixture, ids, seed: seed) }
          group.addTask { try await run(fixture, seed: seed) }
        }
        group.addTask {
          for _ in 0..<40 {
            _ = try await fixture.store.sweep()
            try await fixture.store.tidy()
            #expect(try await fixture.store.audit() == [])
          }
        }
        group.addTask { try await limit(fixture) }
        try await group.waitForAll()
      }
      // Every event of every task comes once, numbered from 1 without a gap.
      var events: [TaskEvent] = []
      while case let more = try await fixture.store.takeEvents(limit: 1000), !more.isEmpty { events += more }
      for (_, events) in Dictionary(grouping: events, by: \.taskID) {
        #expect(events.map(\.sequence) == Array(1...events.count))
      }
      // Every task that can run is run now.
      let worker = try await fixture.worker()
      while true {
        _ = try await fixture.store.sweep()
        let claims = try await fixture.store.claim(worker, limit: 100)
        if claims.isEmpty { break }
        for claim in claims { try await fixture.settle(claim, .success) }
      }
      #expect(try await fixture.store.counts()[.queued] == nil)
    }
  }

  private func command(_ fixture: StoreFixture, _ ids: [UniqueID], seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    let actions: [ControlAction] = [.pause, .resume, .cancel, .retry, .remove, .prioritize(3), .prioritize(-3)]
    for _ in 0..<60 {
      var batch: [Command] = []
      for _ in 0..<10 {
        let place = Int.random(in: 0..<ids.count, using: &random)
        let id = ids[place]
        if Bool.random(using: &random) {
          let isLater = place >= 3 && Int.random(in: 0..<3, using: &random) == 0
          let after = isLater ? ids[..<3].shuffled(using: &random) : []
          batch.append(.submit(.noop(id, queue: "q\(id.low % 3)", host: "h\(id.low % 50)", after: after)))
        } else {
          let action = place < 3 ? .retry : actions[Int.random(in: 0..<actions.count, using: &random)]
          batch.append(.control(.init(id: .random(), taskID: id, action: action)))
        }
      }
      _ = try await fixture.store.apply(batch)
    }
  }

  /// Changes limits while tasks run, and removes all of them at the end.
  private func limit(_ fixture: StoreFixture) async throws {
    var random = SplitMix64(seed: 200)
    for _ in 0..<60 {
      try await fixture.store.setLimit(.queue, name: "q1", to: Int.random(in: 0...9, using: &random))
      try await fixture.store.setLimit(.host, name: "h2", to: Int.random(in: 0...3, using: &random))
      try await fixture.store.setLimit(.total, name: "", to: Int.random(in: 5...30, using: &random))
      try await fixture.store.setWeight(queue: "q2", to: Double.random(in: 0.1...9, using: &random))
    }
    for (scope, name) in [(LimitScope.queue, "q1"), (.host, "h2"), (.total, "")] {
      try await fixture.store.setLimit(scope, name: name, to: nil)
    }
  }

  private func run(_ fixture: StoreFixture, seed: UInt64) async throws {
    var random = SplitMix64(seed: seed + 100)
    var worker = try await fixture.worker()
    for _ in 0..<80 {
      let claims = try await fixture.store.claim(worker, limit: Int.random(in: 1...12, using: &random))
      let samples = claims.map {
        ProgressSample(taskID: $0.spec.id, epoch: $0.epoch, bytesDone: 1, bytesTotal: 2, rate: 3)
      }
      #expect(try await fixture.store.renew(worker, samples: samples).isAlive)
      _ = try await fixture.store.checkpoint(
        claims.map { claim in
          var write = CheckpointWrite.sample(claim.spec.id, epoch: claim.epoch)
          if Bool.random(using: &random) { write.checkpoint.stage = Checkpoint.publishing }
          return write
        })
      if Int.random(in: 0..<8, using: &random) == 0 {
        try await fixture.expireLease(worker)
        worker = try await fixture.worker()
        continue
      }
      var ends: [Settlement] = []
      for claim in claims {
        let outcome: Settlement.Outcome =
          switch Int.random(in: 0..<5, using: &random) {
          case 0: .failed(.reset, retryIn: nil)
          case 1: .failed(.reset, retryIn: .zero)
          case 2: .released(reason: nil, delay: .microseconds(1))
          case 3: .handBack
          default: .success
          }
        ends.append(Settlement(taskID: claim.spec.id, epoch: claim.epoch, outcome: outcome))
      }
      #expect(try await fixture.store.settle(ends).allSatisfy { $0 })
    }
    try await fixture.store.retire(worker)
  }
}
