import TaskCore
import TaskStore
import TestKit
import Testing

@Suite struct ApplyTests {
  @Test("a task that is submitted twice is added once", arguments: StoreKind.allCases)
  func aTaskIsAddedOnce(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let spec = TaskSpec.noop()
      let outcomes = try await fixture.submit(spec, spec)
      #expect(outcomes == [.applied, .duplicate])
      #expect(try await fixture.submit(spec) == [.duplicate])
      #expect(try await fixture.store.counts() == [.queued: 1])
      #expect(try await fixture.events(spec.id) == [.submitted])
    }
  }

  @Test("a specification is read back as it was submitted", arguments: StoreKind.allCases)
  func aSpecComesBackAsItWas(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let spec = TaskSpec(
        id: .random(), kind: .download, source: "https://example.com/a.mp4", destination: "storage://default/ä.mp4",
        priority: -7, queue: "films", expect: Expectation(sha256: Array(repeating: 7, count: 32), bytes: 5),
        ifExists: .replace, headers: [HeaderField(name: "Accept", value: "*/*")],
        retry: RetryPolicy(maxAttempts: 3, intervals: [1, 2]), rate: 1000, credential: "studio",
        labels: ["title": "“Ä”"], parameters: Array(#"{"b":1.0,"a":[null,"\\u0000 ü"],"a":2}"#.utf8))
      try await fixture.submit(spec)
      #expect(try await fixture.store.task(spec.id)?.spec == spec)
      let claims = try await fixture.store.claim(try await fixture.worker(), limit: 1)
      #expect(claims == [Claim(spec: spec, epoch: 1, attempt: 1, checkpoint: nil)])
    }
  }

  /// The largest values that pass validation.
  @Test("the largest valid values are read back as they were submitted", arguments: StoreKind.allCases)
  func extremesComeBackAsTheyWere(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let url = "https://\(String(repeating: "a.", count: 125))b/"
      let query = String(repeating: "x", count: TaskSpec.urlLimit - url.utf8.count)
      let value = String(repeating: "\u{FFFF}", count: 2730)
      let text = "\u{1}\u{7F}\u{85}\u{2028}\u{FFFF}\u{10FFFF}\"\\/"
      let long = text + String(repeating: "\u{1}", count: 1000)
      for (id, priority) in [(UniqueID(high: 0, low: 0), 1000), (UniqueID(high: .max, low: .max), -1000)] {
        let spec = TaskSpec(
          id: id, kind: .download, source: url + query,
          destination: "storage://default/\(String(repeating: "é", count: 127))", priority: priority,
          queue: String(repeating: "q", count: 100), after: (0..<100).map { UniqueID(high: 1, low: $0) },
          notBefore: Timestamp("9999-12-31T23:59:59.999999Z"),
          expect: Expectation(
            sha256: [UInt8](repeating: 0, count: 32), md5: [UInt8](repeating: 255, count: 16), bytes: .max),
          headers: (0..<32).map { HeaderField(name: "X-\(10 + $0)", value: value) },
          retry: RetryPolicy(maxAttempts: 100, intervals: Array(repeating: 86_400, count: 100)), rate: .max,
          credential: String(repeating: "c", count: 100),
          labels: Dictionary(uniqueKeysWithValues: (0..<64).map { ("\($0)\u{85}", long) }),
          parameters: Array("[\(String(repeating: "0,", count: 32_766))-7]".utf8))
        try spec.validate()
        #expect(try await fixture.submit(spec) == [.applied])
        #expect(try await fixture.store.task(id)?.spec == spec)
        #expect(try await fixture.control(.prioritize(-priority), id) == .applied)
        #expect(try await fixture.store.task(id)?.spec.priority == -priority)
      }
    }
  }

  @Test("a repeated command is a duplicate, and a repeated refused one is refused again", arguments: StoreKind.allCases)
  func aCommandIsAppliedOnceAndARefusalIsRepeated(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let spec = TaskSpec.noop()
      try await fixture.submit(spec)
      let pause = Command.control(.init(id: .random(), taskID: spec.id, action: .pause))
      #expect(try await fixture.store.apply([pause, pause]) == [.applied, .duplicate])
      try await fixture.control(.resume, spec.id)
      #expect(try await fixture.store.apply([pause]) == [.duplicate])
      #expect(try await fixture.state(spec.id) == .queued)

      let retry = Command.control(.init(id: .random(), taskID: spec.id, action: .retry))
      let refused = try await fixture.store.apply([retry])[0]
      #expect(refused.isRefused(code: "illegal_transition"))
      try await fixture.control(.cancel, spec.id)
      #expect(try await fixture.store.apply([retry, .submit(.noop()), pause]) == [refused, .applied, .duplicate])
      #expect(try await fixture.control(.pause, .random()).isRefused(code: "unknown_task"))
    }
  }

  @Test(
    "a task that gets the priority that it has keeps its place, and nothing happens to it",
    arguments: StoreKind.allCases)
  func thePresentPriority(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let specs = (0..<3).map { _ in TaskSpec.noop() }
      for spec in specs { try await fixture.submit(spec) }
      #expect(try await fixture.control(.prioritize(specs[0].priority), specs[0].id) == .applied)
      let claims = try await fixture.store.claim(fixture.worker(), limit: 3)
      #expect(claims.map(\.spec.id) == specs.map(\.id))
      #expect(try await fixture.control(.prioritize(specs[0].priority), specs[0].id) == .applied)
      #expect(try await fixture.events(specs[0].id) == [.submitted, .started])
      #expect(try await fixture.settle(claims[0], .succeeded(sha256: nil, bytes: 1)))
      let late = try await fixture.control(.prioritize(specs[0].priority), specs[0].id)
      #expect(late.isRefused(code: "illegal_transition"))
    }
  }

  @Test("a canceled task has no error, also if it waited after a failure", arguments: StoreKind.allCases)
  func aCanceledTaskHasNoError(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let spec = TaskSpec.noop()
      try await fixture.submit(spec)
      let claim = try #require(try await fixture.store.claim(fixture.worker(), limit: 1).first)
      let failure = TaskFailure(code: .http(503), message: "busy", class: .retry)
      #expect(try await fixture.settle(claim, .failed(failure, retryIn: .seconds(60))))
      #expect(try await fixture.store.task(spec.id)?.error == failure)
      #expect(try await fixture.control(.cancel, spec.id) == .applied)
      #expect(try await fixture.store.task(spec.id)?.error == nil)
    }
  }

  @Test("the commands of a batch are applied in order", arguments: StoreKind.allCases)
  func aBatchKeepsItsOrder(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let a = TaskSpec.noop()
      let b = TaskSpec.noop()
      func control(_ action: ControlAction, _ task: UniqueID) -> Command {
        .control(.init(id: .random(), taskID: task, action: action))
      }
      let outcomes = try await fixture.store.apply([
        control(.pause, a.id), .submit(a), control(.pause, a.id), control(.resume, a.id), .submit(b),
        control(.cancel, a.id), control(.remove, a.id), .submit(a),
      ])
      #expect(outcomes[0].isRefused(code: "unknown_task"))
      #expect(outcomes[1...] == [.applied, .applied, .applied, .applied, .applied, .applied, .duplicate])
      #expect(try await fixture.state(a.id) == nil)
      #expect(try await fixture.state(b.id) == .queued)
      #expect(try await fixture.events(a.id) == [.submitted, .paused, .resumed, .canceled, .removed])
    }
  }

  @Test("a removed task cannot be submitted again", arguments: StoreKind.allCases)
  func aRemovedTaskStaysRemoved(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let spec = TaskSpec.noop()
      try await fixture.submit(spec)
      #expect(try await fixture.control(.remove, spec.id) == .applied)
      #expect(try await fixture.submit(spec) == [.duplicate])
      #expect(try await fixture.store.task(spec.id) == nil)
      #expect(try await fixture.store.claim(try await fixture.worker(), limit: 1).isEmpty)
      let other = TaskSpec.noop()
      try await fixture.submit(other)
      #expect(try await fixture.store.removed(among: [other.id, spec.id, .random()]) == [spec.id: false])
      #expect(try await fixture.store.removed(among: []) == [:])
    }
  }

  /// In every state without an owner, every command has the effect that the state machine decides.
  @Test("commands to tasks without a worker follow the state machine", arguments: StoreKind.allCases)
  func commandsToRestingTasksFollowTheMachine(_ kind: StoreKind) async throws {
    let actions: [ControlAction] = [.pause, .resume, .cancel, .retry, .prioritize(3), .remove]
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      for state in TaskState.allCases where state != .running && state != .publishing {
        for action in actions {
          var machine = TaskMachine(state: state, waitsForOthers: state == .blocked)
          let isLegal = (try? machine.handle(.control(action))) != nil
          let id = try await task(in: state, fixture, worker)
          let outcome = try await fixture.control(action, id)
          #expect(isLegal ? outcome == .applied : outcome.isRefused(code: "illegal_transition"), "\(action), \(state)")
          #expect(try await fixture.state(id) == (machine.isRemoved ? nil : machine.state), "\(action), \(state)")
          try await fixture.control(.remove, id)
        }
      }
    }
  }

  private func task(in state: TaskState, _ fixture: StoreFixture, _ worker: WorkerID) async throws -> UniqueID {
    let spec = TaskSpec.noop(after: state == .blocked ? [.random()] : [])
    try await fixture.submit(spec)
    switch state {
    case .queued, .blocked: break
    case .paused: try await fixture.control(.pause, spec.id)
    case .canceled: try await fixture.control(.cancel, spec.id)
    default:
      let claim = try #require(try await fixture.store.claim(worker, limit: 1).first)
      try await fixture.settle(claim, state == .failed ? .failed(.reset, retryIn: nil) : .success)
    }
    #expect(try await fixture.state(spec.id) == state)
    return spec.id
  }
}
