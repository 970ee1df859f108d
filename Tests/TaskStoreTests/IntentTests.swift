import TaskCore
import TaskStore
import Testing

/// Commands to running tasks.
@Suite struct IntentTests {
  private static let ends: [(Settlement.Outcome, TaskMachine.Event)] = [
    (.success, .succeeded), (.handBack, .released(delay: .zero)),
    (.failed(.reset, retryIn: nil), .failed(retryIn: nil)),
    (.failed(.reset, retryIn: .seconds(1)), .failed(retryIn: .seconds(1))),
    (.released(reason: .reset, delay: .seconds(1)), .released(delay: .seconds(1))),
  ]

  /// Renewals return the intent until the worker ends the run. The task then gets the state that the state machine
  /// decides.
  @Test("an intent is repeated until the run ends, and then decides the state", arguments: StoreKind.allCases)
  func anIntentStaysUntilTheTaskIsSettled(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      for (action, intent) in [(ControlAction.pause, Intent.pause), (.cancel, .cancel)] {
        for (outcome, event) in Self.ends {
          let spec = TaskSpec.noop()
          try await fixture.submit(spec)
          let claim = try #require(try await fixture.store.claim(worker, limit: 1).first)
          let boot = try #require(try await fixture.store.workers().first?.id)
          #expect(try await fixture.control(action, spec.id) == .intended(worker: boot))
          for _ in 0..<2 {
            let renewal = try await fixture.store.renew(worker, samples: [])
            #expect(renewal.intents == [spec.id: intent])
          }
          var machine = TaskMachine(state: .running, attempt: 1, epoch: 1, sequence: 2)
          _ = try machine.handle(.control(action))
          _ = try machine.handle(event)
          #expect(try await fixture.settle(claim, outcome))
          let document = try #require(try await fixture.store.task(spec.id))
          #expect(document.state == machine.state && document.attempt == machine.attempt, "\(action), \(event.name)")
          #expect(document.sequence == machine.sequence && document.runAt == nil)
          #expect(try await fixture.store.renew(worker, samples: []).intents.isEmpty)
          #expect(try await fixture.store.claim(worker, limit: 1).isEmpty)
        }
      }
    }
  }

  @Test("resume withdraws a pending pause, and cancel replaces it", arguments: StoreKind.allCases)
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
      #expect(try await fixture.store.renew(worker, samples: []).intents == [spec.id: .cancel])
    }
  }

  @Test("the sweep of a dead worker follows pending intents", arguments: StoreKind.allCases)
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
