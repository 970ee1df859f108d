import TaskCore
import TaskStore
import TestKit
import Testing

/// Leases, fencing, checkpoints and the ends of runs.
@Suite struct RunTests {
  @Test("of two results of one run in a batch the first counts", arguments: StoreKind.allCases)
  func twoResults(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      _ = try await fixture.store.apply((0..<100).map { _ in .submit(.noop()) })
      let claims = try await fixture.store.claim(worker, limit: 100)
      let ends = [
        Settlement.Outcome.succeeded(sha256: nil, bytes: 1), .released(reason: nil, delay: .zero),
      ].flatMap { outcome in
        claims.map { Settlement(taskID: $0.spec.id, epoch: $0.epoch, outcome: outcome) }
      }
      #expect(try await fixture.store.settle(ends).allSatisfy(\.self))
      let tasks = try await fixture.store.tasks(claims.map(\.spec.id))
      #expect(tasks.count == 100 && tasks.values.allSatisfy { $0.state == .succeeded })
    }
  }

  @Test("a run goes from claim to success with its events", arguments: StoreKind.allCases)
  func aRunFromClaimToSuccess(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let spec = TaskSpec.noop()
      try await fixture.submit(spec)
      let claim = try #require(try await fixture.store.claim(worker, limit: 5).first)
      #expect(try await fixture.state(spec.id) == .running)
      let sample = ProgressSample(taskID: spec.id, epoch: claim.epoch, bytesDone: 5, bytesTotal: 10, rate: 3)
      #expect(try await fixture.store.renew(worker, samples: [sample]) == Renewal(isAlive: true))
      var document = try #require(try await fixture.store.task(spec.id))
      #expect(document.bytesDone == 5 && document.bytesTotal == 10 && document.rate == 3 && document.attempt == 1)
      let workers = try await fixture.store.workers()
      #expect(workers.map(\.running) == [1] && workers.map(\.bytesPerSecond) == [3])
      #expect(document.worker == workers.first?.id)
      #expect(workers.first?.kinds == [.noop, .download])
      try await fixture.submit(.noop(), .noop(destination: "storage://nas/a"))
      let backlog = try await fixture.store.backlog()
      #expect(backlog.kinds == [.noop] && backlog.storages == ["nas"])
      #expect(backlog.eventAge >= .zero && backlog.eventAge < .seconds(600))

      let digest = [UInt8](repeating: 9, count: 32)
      #expect(try await fixture.settle(claim, .succeeded(sha256: digest, bytes: 10)))
      document = try #require(try await fixture.store.task(spec.id))
      #expect(document.state == .succeeded && document.sha256 == digest && document.bytesDone == 10)
      #expect(document.finishedAt != nil && document.startedAt != nil && document.rate == nil)
      #expect(try await fixture.events(spec.id) == [.submitted, .started, .succeeded])
    }
  }

  @Test(
    "where a claim found nothing, no task is ready until one is submitted, or comes back", arguments: StoreKind.allCases
  )
  func whatWaits(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      #expect(try await fixture.store.demand(on: worker) == nil)
      try await fixture.submit(.noop())
      #expect(try await fixture.store.demand(on: worker) == Demand(ready: 1, running: 0, workers: 1))
      let claim = try #require(try await fixture.store.claim(worker, limit: 2).first)
      #expect(try await fixture.store.claim(worker, limit: 2).isEmpty)
      #expect(try await fixture.store.demand(on: worker) == nil)
      #expect(try await fixture.settle(claim, .released(reason: nil, delay: .zero)))
      #expect(try await fixture.store.demand(on: worker) == Demand(ready: 1, running: 0, workers: 1))
    }
  }

  @Test(
    "tasks wait for the workers that can run whatever the asking one can, unless they are dead, late or drain",
    arguments: StoreKind.allCases)
  func whatWaitsForWhom(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      func register(_ kinds: [String], _ volumes: [String]) async throws -> WorkerID {
        var registration = WorkerRegistration.sample
        registration.boot = .random()
        registration.kinds = kinds.map(TaskKind.init(rawValue:))
        registration.volumes = Dictionary(uniqueKeysWithValues: volumes.map { ($0, UniqueID.random()) })
        return try await fixture.store.register(registration)
      }
      let small = try await register(["noop"], ["a"])
      let large = try await register(["noop", "rare"], ["a", "b"])
      _ = try await register(["noop"], ["b"])
      try await fixture.submit(.noop(), .noop(), .noop())
      _ = try await fixture.store.claim(large, limit: 1)
      #expect(try await fixture.store.demand(on: small) == Demand(ready: 2, running: 1, workers: 2))
      #expect(try await fixture.store.demand(on: large) == Demand(ready: 2, running: 1, workers: 1))
      try await fixture.store.retire(large)
      #expect(try await fixture.store.demand(on: small)?.workers == 1)
    }
  }

  @Test("what a worker cannot run, or what waits for a limit, calls for no claim of it", arguments: StoreKind.allCases)
  func whatCannotRun(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      let worker = try await fixture.worker()
      func isAsked() async throws -> Bool { try await store.demand(on: worker) != nil }
      try await fixture.submit(.noop(queue: "a", host: "a.example"))
      for (scope, name) in [
        (LimitScope.total, ""), (.kind, "noop"), (.queue, "a"), (.host, "a.example"),
      ] {
        #expect(try await isAsked())
        try await store.setLimit(scope, name: name, to: 0)
        #expect(try await !isAsked(), "\(scope)")
        try await store.setLimit(scope, name: name, to: nil)
      }
      let claim = try #require(try await store.claim(worker, limit: 1).first)
      try await fixture.settle(claim, .success)
      try await fixture.submit(.noop(destination: "storage://away/a"))
      #expect(try await !isAsked())
      var download = TaskSpec.noop()
      download.kind = TaskKind(rawValue: "of-no-worker")
      try await fixture.submit(download)
      #expect(try await !isAsked())
      try await fixture.submit(.noop())
      #expect(try await store.demand(on: worker)?.ready == 1)
    }
  }

  @Test(
    "a claim that found nothing finds nothing later by its number: its answer may have been lost",
    arguments: StoreKind.allCases)
  func emptyClaim(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      #expect(try await fixture.store.claim(worker, limit: 1, call: 7).isEmpty)
      try await fixture.submit(.noop())
      #expect(try await fixture.store.claim(worker, limit: 1, call: 7).isEmpty)
      #expect(try await fixture.store.claim(worker, limit: 1, call: 8).count == 1)
    }
  }

  @Test("the states of existing tasks are read, and others are left out", arguments: StoreKind.allCases)
  func theStatesOfTheTasksThatExist(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let (running, canceled, other) = (TaskSpec.noop(), TaskSpec.noop(), TaskSpec.noop())
      try await fixture.submit(running)
      #expect(try await fixture.store.claim(worker, limit: 1).count == 1)
      try await fixture.submit(canceled, other)
      try await fixture.control(.cancel, canceled.id)
      let states = try await fixture.store.states(of: [running.id, canceled.id, .random()])
      #expect(states == [running.id: .running, canceled.id: .canceled])
      #expect(try await fixture.store.states(of: []) == [:])
    }
  }

  @Test("tasks are found by the last digits of their ids", arguments: StoreKind.allCases)
  func tasksAreFoundByTheEndsOfTheirIDs(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let lows: [UInt64] = [0x8000_0000_00ab_cdef, 0x8000_0000_10ab_cdef, 0x8000_0000_12ab_cdef, 0x8000_0000_0abc_de00]
      let specs = lows.enumerated().map { index, low in
        var spec = TaskSpec.noop()
        spec.id = UniqueID(high: 0x019a_0000_0000_7000 + UInt64(index), low: low)
        return spec
      }
      for spec in specs { try await fixture.submit(spec) }
      func found(_ text: String, limit: Int = 10) async throws -> [Int] {
        let ids = try await fixture.store.ids(ending: #require(IDEnding(text)), limit: limit)
        return ids.map { id in specs.firstIndex { $0.id == id } ?? -1 }
      }
      #expect(try await found("abcdef") == [2, 1, 0])
      #expect(try await found("ABCDEF", limit: 2) == [2, 1])
      // An odd number of digits ends within a byte.
      #expect(try await found("0abcdef") == [1, 0])
      #expect(try await found("10abcdef") == [1])
      #expect(try await found("12-ab-cdef") == [2])
      #expect(try await found("abcde0") == [])
      let whole = specs[3].id.description
      #expect(try await found(String(whole.dropFirst())) == [3])
      #expect(try await found(whole.filter { $0 != "-" }) == [3])
    }
  }

  /// Not the last sample of the run: its bytes are lost, or more were recorded after it.
  @Test("a task without a worker shows its recorded bytes", arguments: StoreKind.allCases)
  func aTaskAtRestTellsWhatIsRecordedOfIt(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let spec = TaskSpec.noop()
      try await fixture.submit(spec)
      for recorded in [[], [0..<3000, 4000..<5000]] as [[Range<Int64>]] {
        let claim = try #require(try await fixture.store.claim(worker, limit: 1).first)
        let sample = ProgressSample(taskID: spec.id, epoch: claim.epoch, bytesDone: 500, bytesTotal: 9000, rate: 3)
        #expect(try await fixture.store.renew(worker, samples: [sample]) == Renewal(isAlive: true))
        if !recorded.isEmpty {
          var write = CheckpointWrite.sample(spec.id, epoch: claim.epoch)
          write.checkpoint.bytesDone = recorded.reduce(0) { $0 + Int64($1.count) }
          #expect(try await fixture.store.checkpoint([write]) == [true])
        }
        #expect(try await fixture.settle(claim, .released(reason: nil, delay: .zero)))
        let document = try #require(try await fixture.store.task(spec.id))
        #expect(document.bytesDone == recorded.reduce(0) { $0 + Int64($1.count) } && document.bytesTotal == 9000)
      }
    }
  }

  /// This holds while the task waits again, while another worker owns it, and after that worker has ended it.
  @Test("no write with an old epoch takes effect", arguments: StoreKind.allCases)
  func nothingOfAnOldEpochTakesEffect(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let zombie = try await fixture.worker()
      let spec = TaskSpec.noop()
      try await fixture.submit(spec)
      let old = try #require(try await fixture.store.claim(zombie, limit: 1).first)
      try await fixture.expireLease(zombie)
      #expect(try await fixture.store.sweep() == SweepResult(expired: 1, due: 0, workers: 0))

      let worker = try await fixture.worker()
      for phase in 0..<3 {
        if phase == 1 {
          let new = try #require(try await fixture.store.claim(worker, limit: 1).first)
          #expect(new.epoch == old.epoch + 1 && new.attempt == 1)
        } else if phase == 2 {
          let end = Settlement(taskID: spec.id, epoch: old.epoch + 1, outcome: .success)
          #expect(try await fixture.store.settle([end]) == [true])
        }
        let before = try await fixture.store.task(spec.id)
        #expect(try await fixture.settle(old, .failed(.reset, retryIn: nil)) == false)
        #expect(try await fixture.store.checkpoint([.sample(spec.id, epoch: old.epoch)]) == [false])
        let sample = ProgressSample(taskID: spec.id, epoch: old.epoch, bytesDone: 9, bytesTotal: 9, rate: 9)
        #expect(try await fixture.store.renew(zombie, samples: [sample]).isAlive == false)
        _ = try await fixture.store.renew(worker, samples: [sample])
        #expect(try await fixture.store.claim(zombie, limit: 1).isEmpty)
        #expect(try await fixture.store.task(spec.id) == before)
      }
    }
  }

  @Test("a repeated settlement changes nothing", arguments: StoreKind.allCases)
  func aSettlementMayBeRepeated(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      for outcome in [Settlement.Outcome.success, .failed(.reset, retryIn: nil), .failed(.reset, retryIn: .seconds(9))]
      {
        let spec = TaskSpec.noop()
        try await fixture.submit(spec)
        let claim = try #require(try await fixture.store.claim(worker, limit: 1).first)
        #expect(try await fixture.settle(claim, outcome))
        let after = try await fixture.store.task(spec.id)
        #expect(try await fixture.settle(claim, outcome))
        #expect(try await fixture.store.task(spec.id) == after)
      }
    }
  }

  @Test("another worker continues from the checkpoint", arguments: StoreKind.allCases)
  func anotherWorkerGoesOnFromTheCheckpoint(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let first = try await fixture.worker()
      let spec = TaskSpec.noop()
      try await fixture.submit(spec)
      _ = try await fixture.store.claim(first, limit: 1)
      var write = CheckpointWrite.sample(spec.id, epoch: 1)
      write.checkpoint.bytesDone = 4096
      #expect(try await fixture.store.checkpoint([write]) == [true])
      let earlier = write
      write.checkpoint.bytesDone = 4904
      write.checkpoint.payload = Array(#"{ "as": "it was written" }"#.utf8)
      #expect(
        try await fixture.store.checkpoint([earlier, write, .sample(.random(), epoch: 1)]) == [true, true, false])
      let read = try await fixture.store.checkpoint(of: write.taskID)
      let none = try await fixture.store.checkpoint(of: .random())
      #expect(read == write.checkpoint && none == nil)
      try await fixture.expireLease(first)
      _ = try await fixture.store.sweep()

      let second = try await fixture.worker()
      let claim = try #require(try await fixture.store.claim(second, limit: 1).first)
      #expect(claim.checkpoint == write.checkpoint)
      #expect(try await fixture.store.task(spec.id)?.generation == 2)

      write.epoch = claim.epoch
      write.checkpoint.stage = Checkpoint.publishing
      #expect(try await fixture.store.checkpoint([write]) == [true])
      #expect(try await fixture.store.checkpoint([write]) == [true])
      let publishing = try await fixture.store.task(spec.id)
      #expect(publishing?.state == .publishing && publishing?.bytesDone == 4904)
      try await fixture.settle(claim, .success)
      #expect(
        try await fixture.events(spec.id) == [.submitted, .started, .released, .started, .publishing, .succeeded])
    }
  }

  @Test("a failed attempt counts, and a released one does not", arguments: StoreKind.allCases)
  func aFailedAttemptCountsAReleasedOneDoesNot(_ kind: StoreKind) async throws {
    let table: [(Settlement.Outcome, attempts: Int, waits: Bool)] = [
      (.failed(.reset, retryIn: .seconds(100)), 1, true), (.released(reason: .reset, delay: .seconds(100)), 1, true),
      (.handBack, 1, false), (.failed(.reset, retryIn: .zero), 2, false),
      (.progressed(.reset, retryIn: .seconds(100)), 0, true), (.failed(.reset, retryIn: .zero), 1, false),
    ]
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let spec = TaskSpec.noop()
      try await fixture.submit(spec)
      for (outcome, attempts, waits) in table {
        let claim = try #require(try await fixture.store.claim(worker, limit: 1).first)
        #expect(try await fixture.settle(claim, outcome))
        let document = try #require(try await fixture.store.task(spec.id))
        #expect(document.state == .queued && document.attempt == attempts && (document.runAt != nil) == waits)
        guard waits else { continue }
        #expect(document.error == .reset)
        #expect(try await fixture.store.claim(worker, limit: 1).isEmpty)
        try await fixture.makeDue(spec.id)
        #expect(try await fixture.store.sweep() == SweepResult(expired: 0, due: 1, workers: 1))
      }
      let claim = try #require(try await fixture.store.claim(worker, limit: 1).first)
      #expect(claim.attempt == 2 && claim.epoch == 7)
      #expect(try await fixture.settle(claim, .failed(.reset, retryIn: nil)))
      #expect(try await fixture.store.task(spec.id)?.error == .reset)
      try await fixture.control(.retry, spec.id)
      #expect(try await fixture.store.claim(worker, limit: 1).first?.attempt == 1)
    }
  }

  @Test("a claim whose answer was lost gets the same tasks again", arguments: StoreKind.allCases)
  func aClaimWhoseAnswerWasLostIsAnsweredAgain(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      _ = try await fixture.store.apply((0..<10).map { _ in .submit(.noop()) })
      func claim(_ call: Int64, limit: Int) async throws -> [Claim] {
        try await fixture.store.claim(worker, limit: limit, call: call).sorted { $0.spec.id < $1.spec.id }
      }
      let first = try await claim(1, limit: 3)
      let second = try await claim(2, limit: 2)
      try #require(first.count == 3 && second.count == 2)
      #expect(try await claim(2, limit: 5) == second)
      #expect(try await fixture.settle(second[0], .success))
      #expect(try await claim(2, limit: 5) == [second[1]], "a task whose run has ended is not returned again")
      #expect(try await claim(3, limit: 9).count == 5)
      let events = try await fixture.store.pendingEvents(limit: 100).events
      #expect(events.count { $0.kind == .started } == 10)
    }
  }

  @Test("claims follow the volumes that a worker has now", arguments: StoreKind.allCases)
  func claimsFollowTheVolumesThatAWorkerHas(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker(volumes: [])
      var spec = TaskSpec.noop()
      spec.kind = .download
      spec.destination = "storage://default/a.mp4"
      try await fixture.submit(spec)
      #expect(try await fixture.store.claim(worker, limit: 1).isEmpty)
      #expect(try await fixture.store.task(spec.id)?.error?.code == .storageMissing)
      #expect(try await fixture.store.tasks(TaskFilter()).map(\.error?.class) == [.wait])
      let volume = UniqueID.random()
      try await fixture.store.announce(worker, volumes: ["default": volume])
      #expect(try await fixture.store.task(spec.id)?.error == nil)
      #expect(try await fixture.store.workers().map(\.volumes) == [["default": volume]])
      let claim = try #require(try await fixture.store.claim(worker, limit: 1).first)
      try await fixture.settle(claim, .handBack)
      try await fixture.store.announce(worker, volumes: ["other": volume])
      #expect(try await fixture.store.claim(worker, limit: 1).isEmpty)
    }
  }

  @Test(
    "a task that is lost five times in a row before its first checkpoint has failed, or twenty times if it is built in",
    arguments: StoreKind.allCases, [TaskKind.noop, .download, .delete])
  func aTaskThatKillsItsWorkers(_ store: StoreKind, its kind: TaskKind) async throws {
    try await withStore(store) { fixture in
      var spec = TaskSpec.noop(UniqueID(high: 1, low: 0x5030_8000))
      if kind != .noop { (spec.kind, spec.source) = (kind, "storage://default/a.mp4") }
      if kind == .download { spec.destination = "storage://default/b.mp4" }
      try await fixture.submit(spec)
      let most = kind == .noop ? 5 : 20
      // What was lost before somebody has asked for it again counts no more.
      for _ in 1..<most {
        try await lose(spec.id, fixture)
        try await fixture.makeDue(spec.id)
      }
      for action in [ControlAction.cancel, .retry] { try await fixture.control(action, spec.id) }
      for round in 0..<2 {
        for loss in 1...most {
          try await lose(spec.id, fixture)
          let document = try #require(try await fixture.store.task(spec.id))
          let waits = document.runAt.map { $0 > document.createdAt } ?? false
          guard loss == most else {
            #expect(document.state == .queued && document.attempt == 0)
            // The waits before the last three runs are bytes of the id, in eighths of a second.
            #expect(waits == (loss > most - 4))
            // Not `scheduled`: nobody has asked for it.
            #expect(document.error?.code == (waits ? .workerLost : nil))
            if waits { try await fixture.makeDue(spec.id) }
            continue
          }
          #expect(document.state == .failed && document.attempt == 1 && document.error?.code == .lostRepeatedly)
          #expect(document.error?.isRetryable == false && document.error?.message.hasPrefix("\(most) workers") == true)
        }
        #expect(try await fixture.events(spec.id).last == .failed)
        if round == 0 { try await fixture.control(.retry, spec.id) }
      }
    }
  }

  @Test(
    "a task of workers that die goes on for as long as it records checkpoints, or its owners end it",
    arguments: StoreKind.allCases, [true, false])
  func workersThatDieFailNoTask(_ kind: StoreKind, isRecorded: Bool) async throws {
    try await withStore(kind) { fixture in
      let spec = TaskSpec.noop(UniqueID(high: 1, low: 1))
      try await fixture.submit(spec)
      for _ in 0..<3 {
        for _ in 1..<RetryPolicy.mostLosses(of: spec.kind) { try await lose(spec.id, fixture) }
        if isRecorded {
          try await lose(spec.id, fixture) { claim in
            let recorded = try await fixture.store.checkpoint([.sample(spec.id, epoch: claim.epoch)])
            #expect(recorded == [true])
          }
        } else {
          let claim = try #require(try await fixture.store.claim(fixture.worker(), limit: 1).first)
          try await fixture.settle(claim, .handBack)
        }
      }
      #expect(try await fixture.state(spec.id) == .queued)
    }
  }

  @Test("an intent wins over the end of a task that is lost again and again", arguments: StoreKind.allCases)
  func anIntentWinsOverLosses(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      for (action, state) in [(ControlAction.pause, TaskState.paused), (.cancel, .canceled)] {
        let spec = TaskSpec.noop(UniqueID(high: 1, low: 1 + UInt64(state == .paused ? 0 : 1)))
        try await fixture.submit(spec)
        for _ in 1..<RetryPolicy.mostLosses(of: spec.kind) { try await lose(spec.id, fixture) }
        try await lose(spec.id, fixture) { _ in try await fixture.control(action, spec.id) }
        let document = try #require(try await fixture.store.task(spec.id))
        #expect(document.state == state && document.error == nil && document.attempt == 0)
      }
    }
  }

  /// Lets the next worker claim the task and die.
  private func lose(
    _ task: UniqueID, _ fixture: StoreFixture, _ body: (Claim) async throws -> Void = { _ in }
  ) async throws {
    _ = try await fixture.store.sweep()
    let worker = try await fixture.worker(kinds: [.noop, .download, .delete])
    let claim = try #require(try await fixture.store.claim(worker, limit: 1).first)
    #expect(claim.spec.id == task)
    try await body(claim)
    try await fixture.expireLease(worker)
    #expect(try await fixture.store.sweep().expired == 1)
  }

  @Test("the tasks of a retired worker are queued again", arguments: StoreKind.allCases)
  func tasksOfARetiredWorkerAreSwept(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      try await fixture.submit(.noop())
      #expect(try await fixture.store.claim(worker, limit: 1).count == 1)
      try await fixture.store.retire(worker)
      #expect(try await fixture.store.claim(worker, limit: 1).isEmpty)
      #expect(try await fixture.store.sweep().expired == 1)
      #expect(try await fixture.store.workers().isEmpty)
      #expect(try await fixture.store.counts() == [.queued: 1])
    }
  }

  @Test(
    "an id that follows from that of a task is known as long as the task is not over", arguments: StoreKind.allCases)
  func derivedIDs(kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      for version: UInt64 in [1, 4, 7, 15] {
        var id = UniqueID.random()
        id = UniqueID(high: id.high & ~0xF000 | version << 12, low: id.low)
        let derived = UniqueID(high: id.high & ~0xF000 | 0x8000, low: ~id.low)
        let other = UniqueID(high: derived.high ^ 1, low: derived.low)
        #expect(try await fixture.store.unfinished(derived: [derived, other]) == [])
        try await fixture.submit(.noop(id))
        #expect(try await fixture.store.unfinished(derived: [derived, other]) == [derived])
        let claim = try #require(try await fixture.store.claim(worker, limit: 1).first)
        #expect(try await fixture.store.unfinished(derived: [derived, other]) == [derived])
        try await fixture.settle(claim, .success)
        #expect(try await fixture.store.unfinished(derived: [derived, other]) == [])
      }
    }
  }
}
