import TaskCore
import TaskStore
import Testing

/// Commands to running tasks.
@Suite struct IntentTests {
  private static let ends: [(ControlAction, Intent.What, Settlement.Outcome, TaskState)] = [
    (.pause, .pause, .handBack, .paused), (.cancel, .cancel, .handBack, .canceled),
    (.pause, .pause, .failed(.reset, retryIn: .seconds(1)), .paused),
    (.cancel, .cancel, .failed(.reset, retryIn: nil), .canceled), (.cancel, .cancel, .success, .succeeded),
  ]

  @Test(arguments: StoreKind.allCases)
  func anIntentStaysUntilTheTaskIsSettled(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      for (action, what, outcome, state) in Self.ends {
        let spec = TaskSpec.noop()
        try await fixture.submit(spec)
        let claim = try #require(try await fixture.store.claim(worker, limit: 1).first)
        let boot = try #require(try await fixture.store.workers().first?.id)
        #expect(try await fixture.control(action, spec.id) == .intended(worker: boot))
        for _ in 0..<2 {
          let renewal = try await fixture.store.renew(worker, samples: [])
          #expect(renewal.intents == [Intent(taskID: spec.id, what: what)])
        }
        #expect(try await fixture.settle(claim, outcome))
        #expect(try await fixture.state(spec.id) == state)
        #expect(try await fixture.store.renew(worker, samples: []).intents.isEmpty)
        #expect(try await fixture.store.claim(worker, limit: 1).isEmpty)
      }
    }
  }

  @Test(arguments: StoreKind.allCases)
  func resumeWithdrawsAPauseAndCancelOverridesIt(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let spec = TaskSpec.noop()
      try await fixture.submit(spec)
      _ = try await fixture.store.claim(worker, limit: 1)
      #expect(try await fixture.control(.resume, spec.id).isRefused(code: "illegal_transition"))
      try await fixture.control(.pause, spec.id)
      #expect(try await fixture.control(.resume, spec.id) == .applied)
      #expect(try await fixture.store.renew(worker, samples: []).intents.isEmpty)
      try await fixture.control(.pause, spec.id)
      try await fixture.control(.cancel, spec.id)
      #expect(try await fixture.control(.pause, spec.id).isRefused(code: "illegal_transition"))
      #expect(try await fixture.control(.remove, spec.id).isRefused(code: "illegal_transition"))
      #expect(try await fixture.store.renew(worker, samples: []).intents == [Intent(taskID: spec.id, what: .cancel)])
    }
  }

  @Test(arguments: StoreKind.allCases)
  func theSweepHonoursIntents(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let specs = [TaskSpec.noop(), .noop(), .noop()]
      try await fixture.submit(specs[0], specs[1], specs[2])
      #expect(try await fixture.store.claim(worker, limit: 3).count == 3)
      try await fixture.control(.pause, specs[0].id)
      try await fixture.control(.cancel, specs[1].id)
      #expect(try await fixture.store.sweep().expired == 0)
      try await fixture.expireLease(worker)
      #expect(try await fixture.store.sweep().expired == 3)
      #expect(try await fixture.store.counts() == [.paused: 1, .canceled: 1, .queued: 1])
      #expect(try await fixture.store.workers().isEmpty)
    }
  }
}
