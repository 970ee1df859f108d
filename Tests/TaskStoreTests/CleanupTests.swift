import ReelhaulPostgres
import TaskCore
import TaskStore
import TestKit
import Testing

/// The store keeps the clean-up of a task until a worker has done it.
@Suite struct CleanupTests {
  @Test("removing a task with a checkpoint leaves the checkpoint to clean up", arguments: StoreKind.allCases)
  func removal(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let spec = TaskSpec.noop(destination: "storage://default/a")
      let write = try await paused(spec, fixture, worker)
      #expect(try await fixture.store.claimCleanups(worker, limit: 10) == [])
      try await fixture.control(.remove, spec.id)
      let cleanup = try #require(try await fixture.store.claimCleanups(worker, limit: 10).first)
      #expect(cleanup.spec.id == spec.id && cleanup.spec.destination == spec.destination)
      #expect(cleanup.checkpoint == write.checkpoint && !cleanup.files && cleanup.attempt == 1)
      try await fixture.store.finishCleanups([cleanup.id])
      #expect(try await fixture.store.claimCleanups(worker, limit: 10) == [])
    }
  }

  @Test(
    "removing a task with its files leaves them to clean up, with or without a checkpoint",
    arguments: StoreKind.allCases)
  func files(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let (done, plain) = (TaskSpec.noop(destination: "storage://default/a"), TaskSpec.noop())
      try await fixture.submit(done, plain)
      for claim in try await fixture.store.claim(worker, limit: 2) { try await fixture.settle(claim, .success) }
      #expect(try await fixture.control(.remove(files: true), done.id) == .applied)
      #expect(try await fixture.control(.remove, plain.id) == .applied)
      let cleanups = try await fixture.store.claimCleanups(worker, limit: 10)
      #expect(cleanups.map(\.spec.id) == [done.id])
      #expect(cleanups.first?.files == true && cleanups.first?.checkpoint == nil)
    }
  }

  @Test("a destination that names no storage, however long it is, holds up no removal", arguments: StoreKind.allCases)
  func oddDestination(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      // A text that cannot be compressed.
      let text = (0..<200).map { _ in "\(UniqueID.random())" }.joined()
      let specs = ["storage://\(text)", "storage://\(text)/a", "storage://.a/b"].map { TaskSpec.noop(destination: $0) }
      for spec in specs {
        try await fixture.submit(spec)
        #expect(try await fixture.control(.remove(files: true), spec.id) == .applied)
      }
      let cleanups = try await fixture.store.claimCleanups(worker, limit: 10)
      #expect(Set(cleanups.map(\.spec.id)) == Set(specs.map(\.id)))
    }
  }

  @Test("clean-ups of a busy line wait, and those of other storages and kinds do not", arguments: StoreKind.allCases)
  func busy(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker(volumes: ["a", "b"])
      let specs = ["a", "b", "a"].map { TaskSpec.noop(destination: "storage://\($0)/x") }
      for spec in specs {
        _ = try await paused(spec, fixture, worker)
        try await fixture.control(.remove, spec.id)
      }
      let line = CleanupLine(specs[0])
      let others = try await fixture.store.claimCleanups(worker, limit: 10, except: [line])
      #expect(others.map(\.spec.id) == [specs[1].id])
      var another = line
      another.kind = .download
      let rest = try await fixture.store.claimCleanups(worker, limit: 10, except: [another])
      #expect(Set(rest.map(\.spec.id)) == [specs[0].id, specs[2].id])
    }
  }

  @Test("what was sent to a server is ended without the storage of the source", arguments: StoreKind.allCases)
  func goneSource(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker(kinds: [.upload, .copy, .noop], volumes: ["gone"])
      var specs: [TaskSpec] = []
      for (kind, destination) in [
        (TaskKind.upload, "s3://b/k"), (.copy, "https://h/f"), (.copy, "storage://gone/c"), (.noop, nil),
      ] {
        var spec = TaskSpec.noop(destination: destination)
        spec.kind = kind
        spec.source = "storage://gone/f"
        _ = try await paused(spec, fixture, worker)
        try await fixture.control(.remove, spec.id)
        specs.append(spec)
      }
      let other = try await fixture.worker(kinds: [.upload, .copy, .noop], volumes: [])
      #expect(
        Set(try await fixture.store.claimCleanups(other, limit: 10).map(\.spec.id)) == Set(specs.prefix(2).map(\.id)))
      #expect(
        Set(try await fixture.store.claimCleanups(worker, limit: 10).map(\.spec.id)) == Set(specs.suffix(2).map(\.id)))
    }
  }

  @Test("a canceled task keeps no checkpoint: a retry begins anew", arguments: StoreKind.allCases, [false, true])
  func cancellation(_ kind: StoreKind, runs: Bool) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let spec = TaskSpec.noop()
      if runs {
        try await fixture.submit(spec)
        let claim = try #require(try await fixture.store.claim(worker, limit: 1).first)
        _ = try await fixture.store.checkpoint([.sample(spec.id, epoch: claim.epoch)])
        try await fixture.control(.cancel, spec.id)
        #expect(try await fixture.store.claimCleanups(worker, limit: 10) == [], "its worker still has it")
        try await fixture.settle(claim, .handBack)
      } else {
        _ = try await paused(spec, fixture, worker)
        try await fixture.control(.cancel, spec.id)
      }
      let cleanups = try await fixture.store.claimCleanups(worker, limit: 10)
      #expect(cleanups.map(\.checkpoint) == [CheckpointWrite.sample(spec.id, epoch: 1).checkpoint])
      try await fixture.control(.retry, spec.id)
      #expect(try await fixture.store.task(spec.id)?.bytesDone == 0)
      let again = try #require(try await fixture.store.claim(worker, limit: 1).first)
      #expect(again.checkpoint == nil && again.epoch == 2 && again.beginsAnew)
      // A second cancel adds no second clean-up.
      try await fixture.control(.cancel, spec.id)
      try await fixture.settle(again, .handBack)
      try await fixture.store.finishCleanups(cleanups.map(\.id))
      #expect(try await fixture.store.claimCleanups(worker, limit: 10) == [])
    }
  }

  @Test("a failed task keeps its checkpoint", arguments: StoreKind.allCases)
  func failure(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let spec = TaskSpec.noop()
      try await fixture.submit(spec)
      let claim = try #require(try await fixture.store.claim(worker, limit: 1).first)
      _ = try await fixture.store.checkpoint([.sample(spec.id, epoch: claim.epoch)])
      try await fixture.settle(claim, .failed(.reset, retryIn: nil))
      #expect(try await fixture.store.claimCleanups(worker, limit: 10) == [])
      try await fixture.control(.retry, spec.id)
      let again = try #require(try await fixture.store.claim(worker, limit: 1).first)
      #expect(again.checkpoint != nil && !again.beginsAnew)
    }
  }

  @Test(
    "a clean-up is for workers that have its kind and storages, and for one at a time", arguments: StoreKind.allCases)
  func workers(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let owner = try await fixture.worker(volumes: ["a", "b"])
      let spec = TaskSpec(
        id: .random(), kind: .noop, source: "storage://a/x", destination: "storage://b/y")
      _ = try await paused(spec, fixture, owner)
      try await fixture.control(.remove, spec.id)
      for other in [
        try await fixture.worker(kinds: [.download], volumes: ["a", "b"]), try await fixture.worker(volumes: ["a"]),
        try await fixture.worker(volumes: ["b"]),
      ] {
        #expect(try await fixture.store.claimCleanups(other, limit: 10) == [])
      }
      let able = try await fixture.worker(volumes: ["a", "b", "c"])
      try await fixture.expireLease(owner)
      #expect(try await fixture.store.claimCleanups(owner, limit: 10) == [])
      #expect(try await fixture.store.claimCleanups(able, limit: 0) == [])
      let cleanup = try #require(try await fixture.store.claimCleanups(able, limit: 10).first)
      #expect(try await fixture.store.claimCleanups(able, limit: 10) == [])
      try await fixture.store.postponeCleanup(cleanup.id, after: .seconds(60), error: "the disk is away")
      #expect(try await fixture.store.claimCleanups(able, limit: 10) == [])
      try await fixture.store.postponeCleanup(cleanup.id, after: .zero, error: "the disk is away")
      #expect(try await fixture.store.claimCleanups(able, limit: 10).map(\.attempt) == [2])
    }
  }

  @Test("a clean-up and a delivery claimed before the database's clock was set back are claimed again")
  func clockSetBack() async throws {
    try await withPostgresStore { store, pool in
      let worker = try await store.register(
        WorkerRegistration(
          boot: .random(), host: "test", pid: 1, leaseSeconds: 3600, kinds: [.noop], volumes: ["default": .random()]))
      let spec = TaskSpec.noop(destination: "storage://default/a")
      _ = try await store.apply([.submit(spec)])
      let claim = try #require(try await store.claim(worker, limit: 1).first)
      _ = try await store.settle([Settlement(taskID: spec.id, epoch: claim.epoch, outcome: .success)])
      let removal = Command.Control(id: .random(), taskID: spec.id, action: .remove(files: true))
      _ = try await store.apply([.control(removal)])
      try await store.addHooks([
        HookEvent(
          taskID: spec.id, sequence: 1, kind: .submitted, url: "https://a.example/", host: "a.example",
          json: Array("{}".utf8))
      ])
      for setBack in [false, true] {
        if setBack {
          _ = try await pool.query("update cleanup set claimed_until = claimed_until + interval '1 h'")
          _ = try await pool.query("update hook_delivery set claimed_until = claimed_until + interval '1 h'")
        }
        #expect(try await store.claimCleanups(worker, limit: 9).count == 1)
        #expect(
          try await store.claimHooks(worker, limit: 9, perHost: 9, besides: [:], failing: [], places: 0).count == 1)
        #expect(try await store.claimCleanups(worker, limit: 9).isEmpty)
        #expect(try await store.claimHooks(worker, limit: 9, perHost: 9, besides: [:], failing: [], places: 0).isEmpty)
      }
    }
  }

  /// A paused task with a checkpoint.
  private func paused(
    _ spec: TaskSpec, _ fixture: StoreFixture, _ worker: WorkerID
  ) async throws -> CheckpointWrite {
    try await fixture.submit(spec)
    let claim = try #require(try await fixture.store.claim(worker, limit: 1).first)
    let write = CheckpointWrite.sample(spec.id, epoch: claim.epoch)
    #expect(try await fixture.store.checkpoint([write]) == [true])
    try await fixture.control(.pause, spec.id)
    try await fixture.settle(claim, .handBack)
    #expect(try await fixture.state(spec.id) == .paused)
    return write
  }
}
