import Glibc
import MemoryTaskStore
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine
import WorkerCore

/// Deletions as a worker runs them, with a store in memory and a real root.
@Suite struct DeleteHandlerTests {
  @Test("a file is deleted, and the output counts it") func file() async throws {
    try await DeleteBench.run { bench in
      try bench.make("a/film.mp4", "film")
      #expect(try await bench.run(delete("a/film.mp4")) == output(4, #"{"files":1,"bytes":4}"#))
      #expect(!bench.exists("a/film.mp4"))
    }
  }

  @Test("a file that is absent is a success and said so") func absent() async throws {
    try await DeleteBench.run { bench in
      for path in ["film.mp4", "no/film.mp4"] {
        let outcome = try await bench.run(delete(path))
        #expect(outcome == output(0, #"{"files":0,"bytes":0,"absent":true}"#))
      }
      let exact = delete("film.mp4", expect: Expected(bytes: 4))
      #expect(try await bench.run(exact) == output(0, #"{"files":0,"bytes":0,"absent":true}"#))
    }
  }

  @Test("a file that is exactly as expected is deleted") func exact() async throws {
    try await DeleteBench.run { bench in
      for expect in [Expected(sha256: filmDigest), Expected(bytes: 4), Expected(sha256: filmDigest, bytes: 4)] {
        try bench.make("film.mp4", "film")
        #expect(try await bench.run(delete("film.mp4", expect: expect)) == output(4, #"{"files":1,"bytes":4}"#))
        #expect(!bench.exists("film.mp4"))
      }
      #expect(try bench.storage.volume("default").staged().isEmpty)
    }
  }

  @Test("a file with another digest or size stays") func mismatch() async throws {
    try await DeleteBench.run { bench in
      try bench.make("film.mp4", "another film")
      for (expect, code) in [
        (Expected(sha256: filmDigest), "digest_mismatch"), (Expected(bytes: 4), "size_mismatch"),
        (Expected(md5: Array(repeating: 1, count: 16)), "digest_mismatch"),
        (Expected(sha256: filmDigest, bytes: 12), "digest_mismatch"),
      ] {
        let failure = try #require(failure(try await bench.run(delete("film.mp4", expect: expect))))
        #expect(failure.code.rawValue == code && failure.class == .fail)
        #expect(failure.message.contains("storage://default/film.mp4") && failure.message.contains("is not deleted"))
      }
      #expect(bench.exists("film.mp4"))
    }
  }

  @Test("a directory needs to be deleted recursively, and has no digest") func directory() async throws {
    try await DeleteBench.run { bench in
      try bench.make("talks/deep/film.mp4", "film")
      try bench.make("talks/two.mp4", "talk two")
      for parameters in [nil, "{}", #"{"recursive":false}"#] {
        let failure = failure(try await bench.run(delete("talks", parameters)))
        #expect(failure?.code.rawValue == "is_directory" && failure?.class == .fail)
      }
      let exact = delete("talks", #"{"recursive":true}"#, expect: Expected(bytes: 12))
      #expect(failure(try await bench.run(exact))?.code == .destinationInvalid)
      #expect(bench.exists("talks/deep/film.mp4") && bench.exists("talks/two.mp4"))
      let recursive = delete("talks", #"{"recursive":true}"#)
      #expect(try await bench.run(recursive) == output(12, #"{"files":2,"bytes":12}"#))
      #expect(!bench.exists("talks"))
    }
  }

  @Test("wrong parameters and wrong sources are permanent failures, and nothing is deleted") func wrongWords()
    async throws
  {
    try await DeleteBench.run { bench in
      try bench.make("film.mp4", "film")
      for parameters in ["[]", #"{"recursive":"yes"}"#, "null"] {
        let failure = failure(try await bench.run(delete("film.mp4", parameters)))
        #expect(failure?.code.rawValue == "parameters_invalid" && failure?.class == .fail, "\(parameters)")
      }
      let unknown = failure(try await bench.run(delete("film.mp4", #"{"recusive":true}"#)))
      #expect(unknown?.code == .specUnreadable && unknown?.class == .wait, "a newer worker may know it")
      for source in ["ftp://host/film.mp4", "storage://default/.reelhaul/volume", "storage://default/../film.mp4"] {
        var spec = delete("film.mp4")
        spec.source = source
        #expect(failure(try await bench.run(spec, checked: false))?.code == .sourceInvalid, "\(source)")
      }
      var spec = delete("film.mp4")
      spec.source = "storage://other/film.mp4"
      #expect(failure(try await bench.run(spec, checked: false))?.code == .storageUnknown)
      #expect(bench.exists("film.mp4") && bench.exists(".reelhaul/volume"))
    }
  }

  @Test("a run that continues the plan of a crashed one counts all files") func resume() async throws {
    try await DeleteBench.run { bench in
      for number in 0..<20 { try bench.make("talks/\(number)", "film") }
      let spec = delete("talks", #"{"recursive":true}"#)
      let first = try await bench.claim(spec)
      #expect(await bench.handler.run(first.claim, ledger: first.ledger) == output(80, #"{"files":20,"bytes":80}"#))
      // The state after a first run has deleted 13 of them.
      for number in 0..<7 { try bench.make("talks/\(number)", "film") }
      let second = try await bench.crash(first)
      #expect(second.claim.epoch > first.claim.epoch && second.claim.checkpoint?.bytesTotal == 80)
      #expect(await bench.handler.run(second.claim, ledger: second.ledger) == output(80, #"{"files":20,"bytes":80}"#))
      #expect(second.ledger.bytesDone == 80)
      let third = try await bench.crash(second)
      // Everything is gone, but this task deleted it. So it does not count as absent.
      #expect(await bench.handler.run(third.claim, ledger: third.ledger) == output(80, #"{"files":20,"bytes":80}"#))
      #expect(!bench.exists("talks"))
    }
  }

  @Test("a name in any Unicode form is deleted if it is exactly as the task spells it; otherwise the composed one is")
  func spellings() async throws {
    try await DeleteBench.run { bench in
      let (composed, decomposed) = ("\u{e9}.mp4", "e\u{301}.mp4")
      let (one, absent) = (output(4, #"{"files":1,"bytes":4}"#), output(0, #"{"files":0,"bytes":0,"absent":true}"#))
      for expect in [Expected(), Expected(sha256: filmDigest)] {
        try bench.make(decomposed, "film")
        #expect(try await bench.run(delete(composed, expect: expect)) == absent)
        try bench.make(composed, "film")
        #expect(try await bench.run(delete(decomposed, expect: expect)) == one)
        #expect(bench.exists(composed) && !bench.exists(decomposed))
        #expect(try await bench.run(delete(decomposed, expect: expect)) == one)
        #expect(!bench.exists(composed))
      }
    }
  }

  @Test("a task that has deleted a decomposed name does not delete the composed one after a crash")
  func spellingIsKept() async throws {
    try await DeleteBench.run { bench in
      let (composed, decomposed) = ("\u{e9}.mp4", "e\u{301}.mp4")
      try bench.make(composed, "film")
      try bench.make(decomposed, "film")
      let first = try await bench.claim(delete(decomposed))
      let one = output(4, #"{"files":1,"bytes":4}"#)
      #expect(await bench.handler.run(first.claim, ledger: first.ledger) == one)
      let second = try await bench.crash(first)
      #expect(await bench.handler.run(second.claim, ledger: second.ledger) == one)
      #expect(bench.exists(composed) && !bench.exists(decomposed))
    }
  }

  @Test("file operations of transfers that hang, however many, hold up no deletion at their root")
  func transfersHang() async throws {
    try await DeleteBench.run { bench in
      try bench.make("film.mp4", "film")
      let root = try #require(bench.roots["default"])
      let run = try await bench.claim(delete("film.mp4"))
      let gate = Condition(false)
      for _ in 0..<32 { root.files.submit { gate.wait(until: { $0 }, then: { _ in }) } }
      try await bench.goesOn(gate) {
        let outcome = await bench.handler.run(run.claim, ledger: run.ledger)
        #expect(outcome == output(4, #"{"files":1,"bytes":4}"#))
      }
    }
  }

  @Test("deletions that hang, however many, hold up no file operation of a transfer at their root")
  func deletionsHang() async throws {
    try await DeleteBench.run { bench in
      let root = try #require(bench.roots["default"])
      let gate = Condition(false)
      let started = Lock(0)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<32 {
          group.addTask {
            started.withLock { $0 += 1 }
            try await root.delete(pulse: {}) { _ in gate.wait(until: { $0 }, then: { _ in }) }
          }
        }
        try await eventually("deletions begin") { started.withLock { $0 } == 32 }
        try await bench.goesOn(gate) { try await root.withVolume { _ in } }
        try await group.waitForAll()
      }
    }
  }

  @Test("a deletion that began on one volume says nothing of another one at the same root") func otherVolume()
    async throws
  {
    try await DeleteBench.run { bench in
      try bench.make("talks/film.mp4", "film")
      let first = try await bench.claim(delete("talks", #"{"recursive":true}"#))
      #expect(await bench.handler.run(first.claim, ledger: first.ledger) == output(4, #"{"files":1,"bytes":4}"#))
      let again = try await bench.crash(first)
      #expect(rename(bench.root, "\(bench.root).away") == 0)
      let unmounted = failure(await bench.handler.run(again.claim, ledger: again.ledger))
      #expect(unmounted?.code == .storageMissing && unmounted?.class == .wait)
      try Volume.initialise(name: "default", path: bench.root)
      let other = failure(await bench.handler.run(again.claim, ledger: again.ledger))
      #expect(other?.code == .storageVolumeGone && other?.class == .wait)
    }
  }

  @Test("nothing is deleted once the fence is closed or the task is lost", arguments: [true, false])
  func fence(closes: Bool) async throws {
    try await DeleteBench.run { bench in
      try bench.make("film.mp4", "film")
      for expect in [Expected(), Expected(sha256: filmDigest)] {
        let run = try await bench.claim(delete("film.mp4", expect: expect))
        if closes { run.ledger.lease.fence.close() } else { run.ledger.disown() }
        #expect(await bench.handler.run(run.claim, ledger: run.ledger) == .stopped)
      }
      #expect(bench.exists("film.mp4"))
    }
  }

  @Test("a run that loses its task once its plan is recorded deletes nothing", arguments: [true, false])
  func lostAfterThePlan(closes: Bool) async throws {
    try await DeleteBench.run { bench in
      try bench.make("film.mp4", "film")
      try bench.make("talks/film.mp4", "film")
      for spec in [
        delete("film.mp4"), delete("film.mp4", expect: Expected(sha256: filmDigest)),
        delete("talks", #"{"recursive":true}"#),
      ] {
        let run = try await bench.claim(spec)
        bench.front.onCheckpoint { if closes { run.ledger.lease.fence.close() } else { run.ledger.disown() } }
        #expect(await bench.handler.run(run.claim, ledger: run.ledger) == .stopped)
      }
      #expect(bench.exists("film.mp4") && bench.exists("talks/film.mp4"))
    }
  }

  @Test("a worker whose lease is gone in the store deletes nothing") func leaseGone() async throws {
    try await DeleteBench.run { bench in
      try bench.make("film.mp4", "film")
      let run = try await bench.claim(delete("film.mp4"))
      _ = try await bench.crash(run)
      #expect(await bench.handler.run(run.claim, ledger: run.ledger) == .stopped)
      #expect(bench.exists("film.mp4"))
    }
  }
}

private typealias Expected = TaskCore.Expectation

/// The SHA-256 of `film`.
private let filmDigest: [UInt8] = [
  0xd0, 0x60, 0x7f, 0x7a, 0xd2, 0x62, 0x8b, 0x2a, 0xf9, 0x15, 0x8d, 0xfb, 0xa0, 0x6c, 0xe8, 0x71, 0x66, 0xe6, 0x6b,
  0x15, 0xbf, 0x68, 0xf8, 0xf3, 0x58, 0xf9, 0xaa, 0x27, 0xcc, 0xb7, 0xc3, 0x21,
]

private func delete(_ path: String, _ parameters: String? = nil, expect: Expected = Expected()) -> TaskSpec {
  TaskSpec(
    id: .random(), kind: .delete, source: "storage://default/\(path)", expect: expect,
    parameters: parameters.map { Array($0.utf8) })
}

private func output(_ bytes: Int64, _ json: String) -> RunOutcome {
  .succeeded(sha256: nil, bytes: bytes, output: Array(json.utf8))
}

private func failure(_ outcome: RunOutcome) -> TaskFailure? {
  if case .failed(let failure) = outcome { failure } else { nil }
}

/// A handler with its own root, and the runs that the test gives it.
private final class DeleteBench: Sendable {
  struct Run: Sendable {
    var claim: Claim
    var ledger: RunLedger
  }

  let store = MemoryStore()
  /// What the runs see of it.
  let front: TestStore
  let storage: Storage
  let handler: DeleteHandler
  let root: String
  private let loop = EventLoop(name: "delete-test")
  private let directory: TemporaryDirectory
  let roots: StorageRoots
  private let boots = Lock(UInt64(0))

  private init() throws {
    front = TestStore(store)
    directory = try TemporaryDirectory()
    root = "\(directory.path)/root"
    storage = Storage(roots: ["default": root])
    try storage.initialise()
    roots = StorageRoots(storage, loop: loop, settings: .init(permits: { _ in false }))
    handler = DeleteHandler(roots: roots)
  }

  static func run(_ body: (DeleteBench) async throws -> Void) async throws {
    let bench = try DeleteBench()
    let result: Result<Void, any Error>
    do {
      result = .success(try await body(bench))
    } catch {
      result = .failure(error)
    }
    await bench.roots.close()
    await Task.detached { [loop = bench.loop] in loop.shutdown() }.value
    try result.get()
  }

  /// Fails unless `body` ends while the gate is closed. Opens it then.
  func goesOn(_ gate: Condition<Bool>, _ body: @escaping @Sendable () async throws -> Void) async throws {
    let isDone = Lock(false)
    async let end: Void = {
      try await body()
      isDone.withLock { $0 = true }
    }()
    try? await eventually("it waits", within: .seconds(60)) { isDone.withLock { $0 } }
    gate.withLock { $0 = true }
    gate.broadcast()
    try await end
  }

  func make(_ path: String, _ text: String) throws {
    try makeDirectories("\(root)/\(path)".split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" })
    try FileDescriptor.open("\(root)/\(path)", O_WRONLY | O_CREAT | O_TRUNC).write(text, at: 0)
  }

  func exists(_ path: String) -> Bool { access("\(root)/\(path)", F_OK) == 0 }

  func claim(_ spec: TaskSpec) async throws -> Run {
    _ = try await store.apply([.submit(spec)])
    return try await nextRun()
  }

  /// The claim of a new worker.
  private func nextRun() async throws -> Run {
    let boot = boots.withLock { boots in
      boots += 1
      return boots
    }
    let worker = try await store.register(
      WorkerRegistration(
        boot: UniqueID(high: 1, low: boot), host: "test", pid: 1, leaseSeconds: 3600, kinds: [.delete],
        volumes: storage.volumes))
    let claim = try #require(try await store.claim(worker, limit: 1, call: 1).first)
    return run(of: claim, worker, boot)
  }

  private func run(of claim: Claim, _ worker: WorkerID, _ boot: UInt64) -> Run {
    let lease = Lease(
      worker: worker, boot: UniqueID(high: 1, low: boot), fence: Fence(until: .now + .seconds(3600)))
    let batcher = StoreBatcher(store: front, loop: loop, log: quietLog)
    return Run(claim: claim, ledger: RunLedger(claim: claim, lease: lease, store: batcher))
  }

  /// The worker of a run ends before it can settle the run. Another worker then owns the task.
  func crash(_ run: Run) async throws -> Run {
    store.expireLease(of: run.ledger.lease.worker)
    _ = try await store.sweep()
    store.makeDue(run.claim.spec.id)
    return try await nextRun()
  }

  func run(_ spec: TaskSpec, checked: Bool = true) async throws -> RunOutcome {
    if checked {
      let run = try await claim(spec)
      return await handler.run(run.claim, ledger: run.ledger)
    }
    // No producer could submit this task.
    let claim = Claim(spec: spec, epoch: 1, attempt: 1, checkpoint: nil)
    let run = run(of: claim, WorkerID(rawValue: 1), 1)
    return await handler.run(claim, ledger: run.ledger)
  }
}
