import ReelhaulPostgres
import TaskCore
import TaskStore
import TestKit
import Testing

/// What is kept of the unusual events of a task, and who asked for them.
@Suite struct HistoryTests {
  private func control(
    _ action: ControlAction, _ task: UniqueID, by actor: String?, _ store: any CommandStore
  ) async throws -> CommandOutcome {
    try await store.apply([.control(.init(id: .random(), taskID: task, action: action, actor: actor))])[0]
  }

  @Test("a life that runs through leaves no history")
  func plain() async throws {
    try await withPostgresStore { store, pool in
      let specs = (0..<20).map { _ in TaskSpec.noop() }
      _ = try await store.apply(specs.map(Command.submit))
      let worker = try await store.register(.downloads)
      let claims = try await store.claim(worker, limit: 20)
      #expect(claims.count == 20)
      let ends = claims.map { Settlement(taskID: $0.spec.id, epoch: $0.epoch, outcome: .success) }
      #expect(try await store.settle(ends).allSatisfy { $0 })
      #expect(try await pool.query("select count(*) from task_history")[0].int64(0) == 0)
    }
  }

  @Test("failed and lost runs, and what people asked for, are kept with worker, times and actor")
  func unusual() async throws {
    try await withPostgresStore { store, pool in
      let spec = TaskSpec.noop()
      _ = try await store.apply([.submit(spec)])
      let worker = try await store.register(.downloads)
      let boot = try #require(try await store.workers().first?.id)
      func claim() async throws -> Claim {
        let claims = try await store.claim(worker, limit: 1)
        guard let first = claims.first else { throw NothingClaimed() }
        return first
      }
      func settle(_ claim: Claim, _ outcome: Settlement.Outcome) async throws {
        #expect(try await store.settle([.init(taskID: spec.id, epoch: claim.epoch, outcome: outcome)]) == [true])
      }
      try await settle(try await claim(), .failed(.reset, retryIn: .zero))
      #expect(try await control(.pause, spec.id, by: "anna", store) == .applied)
      #expect(try await control(.resume, spec.id, by: nil, store) == .applied)
      try await settle(try await claim(), .handBack)
      let last = try await claim()
      #expect(try await control(.cancel, spec.id, by: "cli:otto@mill", store) == .intended(worker: boot))
      try await settle(last, .handBack)
      #expect(try await control(.retry, spec.id, by: "anna", store) == .applied)
      #expect(try await control(.prioritize(7), spec.id, by: "anna", store) == .applied)
      _ = try await claim()
      _ = try await pool.query("update worker set lease_until = now() - interval '1 s'")
      #expect(try await store.sweep().expired == 1)

      let history = try await store.history(of: spec.id)
      #expect(
        history.map(\.type)
          == ["retrying", "paused", "resumed", "released", "canceled", "retrying", "prioritized", "lost"])
      #expect(history.map(\.actor) == [nil, "anna", nil, nil, "cli:otto@mill", "anna", "anna", nil])
      #expect(history[0].code == TaskFailure.reset.code && history[0].message == "The server hung up.")
      #expect(history[0].worker == boot && history[0].attempt == 1 && history[0].epoch == 1)
      let startedAt = try #require(history[0].startedAt)
      #expect(startedAt <= history[0].at)
      #expect(history.filter { $0.startedAt != nil }.map(\.type) == ["retrying", "released", "canceled", "lost"])
      #expect(history.map(\.sequence) == history.map(\.sequence).sorted())

      // The events tell the actor as well.
      let events = try await store.takeEvents(limit: 100).filter { $0.taskID == spec.id }
      for entry in history { #expect(events.first { $0.sequence == entry.sequence }?.actor == entry.actor) }

      #expect(try await control(.cancel, spec.id, by: "anna", store) == .applied)
      #expect(try await control(.remove, spec.id, by: "anna", store) == .applied)
      #expect(try await store.history(of: spec.id).isEmpty)
    }
  }

  @Test("of very many unusual events, the first and the last ones are kept")
  func bounded() async throws {
    try await withPostgresStore { store, pool in
      let spec = TaskSpec.noop()
      _ = try await store.apply([.submit(spec)])
      for _ in 0..<130 {
        for action in [ControlAction.pause, .resume] {
          #expect(try await control(action, spec.id, by: "anna", store) == .applied)
        }
      }
      let numbers = try await store.history(of: spec.id).map(\.sequence)
      #expect(numbers == Array(2...51) + Array(112...261))
    }
  }

  @Test("events tell who asked for a command, also if the task ran then", arguments: StoreKind.allCases)
  func actors(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let spec = TaskSpec.noop()
      try await fixture.submit(spec)
      let worker = try await fixture.worker()
      let claim = try #require(try await fixture.store.claim(worker, limit: 1).first)
      for (action, actor) in [(ControlAction.pause, "anna"), (.cancel, "otto")] {
        _ = try await control(action, spec.id, by: actor, fixture.store)
      }
      try await fixture.settle(claim, .handBack)
      _ = try await control(.retry, spec.id, by: "anna", fixture.store)
      let events = try await fixture.store.takeEvents(limit: 100)
      #expect(events.map(\.kind) == [.submitted, .started, .canceled, .retrying])
      #expect(events.map(\.actor) == [nil, nil, "otto", "anna"])
    }
  }

  @Test("a renewal tells a worker that it shall end, beside its intents; one without a lease is not asked")
  func drain() async throws {
    try await withPostgresStore { store, pool in
      let worker = try await store.register(.downloads)
      let boot = try #require(try await store.workers().first?.id)
      #expect(try await store.renew(worker, samples: []) == Renewal(isAlive: true))
      let spec = TaskSpec.noop()
      _ = try await store.apply([.submit(spec)])
      _ = try await store.claim(worker, limit: 1)
      _ = try await control(.pause, spec.id, by: nil, store)
      #expect(try await store.drain(boot))
      #expect(
        try await store.renew(worker, samples: [])
          == Renewal(isAlive: true, intents: [spec.id: .pause], isDraining: true))
      let document = try #require(try await store.workers().first)
      #expect(document.state == "draining" && document.version == nil && document.leaseAge < .seconds(60))
      #expect(try await !store.drain(.random()))
      _ = try await pool.query("update worker set lease_until = now() - interval '1 s'")
      #expect(try await !store.drain(boot))
      #expect(try await store.workers().first?.state == "expired")
      _ = try await store.sweep()
    }
  }

  @Test("a worker of the version before is alive although it was asked to end") func before() async throws {
    try await withPostgresStore { store, pool in
      let worker = try await store.register(.downloads)
      let boot = try #require(try await store.workers().first?.id)
      #expect(try await store.drain(boot))
      let rows = try await pool.query("select task_id, what from renew($1)", .int32(worker.rawValue))
      // It takes a row without a task as "no intent".
      #expect(rows.count >= 1)
      for row in rows { #expect(try row[try rows.columns["task_id"]] == nil) }
    }
  }
}

private struct NothingClaimed: Error {}
