import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// The two stores carry out the same operations, one after the other, and must give the same answers. The memory store
/// uses the state machine, so this proves that PostgreSQL follows it too.
@Suite struct ModelTests {
  @Test("random operations have the same results in PostgreSQL and in memory", arguments: 0..<10 as Range<UInt64>)
  func postgresDoesWhatTheMachineSays(seed: UInt64) async throws {
    try await withStore(.memory) { memory in
      try await withStore(.postgres) { postgres in
        var model = Model(memory, postgres, seed: seed)
        for step in 0..<250 {
          try await model.step()
          if step % 3 == 0 { try await model.publish() }
          if step % 10 == 0 { try await model.compareEverything() }
        }
        try await model.compareEverything()
      }
    }
  }
}

private struct Model {
  private let stores: [StoreFixture]
  private var random: SplitMix64
  private let ids: [UniqueID]
  /// Removed tasks never come back, so the operations move on to new tasks.
  private var steps = 0
  private let shape: UInt64
  /// The same worker in both stores.
  private var workers: [[WorkerID]] = []
  private var claims: [Claim] = []
  /// Under way, in both stores.
  private var cleanups: [[Cleanup]] = []
  private var events: [[TaskEvent]] = [[], []]

  init(_ memory: StoreFixture, _ postgres: StoreFixture, seed: UInt64) {
    stores = [memory, postgres]
    random = SplitMix64(seed: seed)
    shape = seed % 5
    ids = (1...40).map { UniqueID(high: 0x019a_0000_0000_7000 + seed << 16, low: 0x8000_0000_0000_0000 | $0) }
  }

  private mutating func pick(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
  private mutating func uuid() -> UniqueID { UniqueID(high: random.next(), low: random.next()) }

  /// Makes the same call to both stores. The answers must be equal.
  @discardableResult
  private func both<Answer: Equatable>(
    _ what: String, _ call: (StoreFixture, Int) async throws -> Answer
  ) async throws -> Answer {
    let answers = [try await call(stores[0], 0), try await call(stores[1], 1)]
    #expect(answers[0] == answers[1], "\(what)")
    return answers[1]
  }

  private mutating func task() -> UniqueID { ids[min(steps / 8 + pick(9), ids.count - 1)] }

  mutating func step() async throws {
    steps += 1
    switch pick(16) {
    case 0: try await register()
    case 1...5: try await command()
    case 6, 7: try await claim()
    case 8, 9: try await settle()
    case 10: try await checkpoint()
    case 11: try await renew()
    case 12: try await passTime()
    case 13: try await cleanUp()
    case 14: try await endCleanup()
    default: try await limit()
    }
  }

  private mutating func register() async throws {
    let boot = uuid()
    guard workers.count < 3 else { return }
    let kinds: [TaskKind] = [[.noop, .download, .copy, .delete], [.noop, .copy], [.noop, .download]][pick(3)]
    let volumes = [["one", "two"], ["one"], ["two"]][pick(3)]
    workers.append([
      try await stores[0].worker(boot, kinds: kinds, volumes: volumes),
      try await stores[1].worker(boot, kinds: kinds, volumes: volumes),
    ])
  }

  /// Needs no storage, one or two. All of a model are of one kind: in which order tasks of several are claimed is not part
  /// of the contract.
  private mutating func spec() -> TaskSpec {
    var spec = TaskSpec.noop(task(), priority: pick(3))
    let (one, two) = ("storage://one/\(pick(3))", "storage://two/\(pick(3))")
    switch shape {
    case 0: (spec.kind, spec.destination) = (.download, one)
    case 1: (spec.kind, spec.source, spec.destination) = (.copy, one, two)
    case 2: (spec.kind, spec.source, spec.destination) = (.copy, two, "https://example.com/a")
    case 3: (spec.kind, spec.source, spec.destination) = (.delete, two, nil)
    default: break
    }
    return spec
  }

  private mutating func command() async throws {
    var batch: [Command] = []
    for _ in 0...pick(4) {
      let id = task()
      let actions: [ControlAction] = [
        .pause, .resume, .cancel, .retry, .remove(files: pick(2) == 0), .prioritize(pick(3)), .resume, .retry,
      ]
      if pick(3) > 0 {
        let actor = pick(2) == 0 ? nil : "actor \(pick(3))"
        batch.append(.control(.init(id: uuid(), taskID: id, action: actions[pick(actions.count)], actor: actor)))
      } else {
        var spec = spec()
        let id = spec.id
        if pick(3) == 0 { spec.after = Set([task(), task()]).filter { $0 != id }.sorted() }
        spec.paused = pick(6) == 0
        if pick(6) == 0 { spec.notBefore = Timestamp(microseconds: 4_000_000_000_000_000) }
        batch.append(.submit(spec))
      }
    }
    // New tasks come first, as in PostgreSQL: the positions in the queue are not part of the contract of a batch.
    batch = batch.filter(\.isSubmit) + batch.filter { !$0.isSubmit }
    if let repeated = batch.randomElement(using: &random) { batch.append(repeated) }
    try await both("\(batch)") { store, _ in try await store.store.apply(batch) }
  }

  private mutating func claim() async throws {
    guard let worker = workers.randomElement(using: &random) else { return }
    let limit = 1 + pick(3)
    claims += try await both("claim") { store, index in
      try await store.store.claim(worker[index], limit: limit).sorted { $0.spec.id < $1.spec.id }
    }
  }

  private mutating func settle() async throws {
    guard !claims.isEmpty else { return }
    let claim = claims[pick(claims.count)]
    let failure = TaskFailure(code: .http(503), message: "busy", class: .retry, retryAfter: pick(2) == 0 ? 7 : nil)
    let outcomes: [Settlement.Outcome] = [
      .success, .succeeded(sha256: [UInt8](repeating: 7, count: 32), bytes: 9), .failed(failure, retryIn: nil),
      .failed(failure, retryIn: .zero), .failed(failure, retryIn: .seconds(3600)), .handBack,
      .progressed(failure, retryIn: .zero), .progressed(failure, retryIn: .seconds(3600)),
      .released(reason: failure, delay: .seconds(3600)), .released(reason: failure, delay: .zero),
    ]
    let outcome = outcomes[pick(outcomes.count)]
    try await both("settle \(outcome)") { store, _ in try await store.settle(claim, outcome) }
  }

  private mutating func cleanUp() async throws {
    guard let worker = workers.randomElement(using: &random) else { return }
    var claimed: [[Cleanup]] = []
    for (store, id) in zip(stores, worker) {
      claimed.append(try await store.store.claimCleanups(id, limit: 1000).sorted { $0.spec.id < $1.spec.id })
    }
    // Their numbers are the store's own, and whether the priority is the first or the last one does not matter.
    func whatIsLeft(_ cleanup: Cleanup) -> Cleanup {
      var cleanup = cleanup
      (cleanup.id, cleanup.spec.priority) = (0, 0)
      return cleanup
    }
    try #require(claimed[0].map(whatIsLeft) == claimed[1].map(whatIsLeft))
    cleanups += zip(claimed[0], claimed[1]).map { [$0, $1] }
  }

  private mutating func endCleanup() async throws {
    guard !cleanups.isEmpty else { return }
    let cleanup = cleanups.remove(at: pick(cleanups.count))
    let end = pick(4)
    for (store, cleanup) in zip(stores.map(\.store), cleanup) {
      switch end {
      case 0: try await store.finishCleanups([cleanup.id])
      case 1: try await store.returnCleanups([cleanup.id])
      case 2: try await store.postponeCleanup(cleanup.id, after: .zero, error: "busy")
      default: try await store.postponeCleanup(cleanup.id, after: .seconds(3600), error: "busy")
      }
    }
  }

  private mutating func checkpoint() async throws {
    guard !claims.isEmpty else { return }
    let claim = claims[pick(claims.count)]
    var write = CheckpointWrite.sample(claim.spec.id, epoch: claim.epoch)
    write.checkpoint.generation = pick(5)
    if pick(2) == 0 { write.checkpoint.stage = Checkpoint.publishing }
    try await both("checkpoint") { [write] store, _ in try await store.store.checkpoint([write]) }
  }

  private mutating func renew() async throws {
    guard let worker = workers.randomElement(using: &random) else { return }
    let samples = claims.shuffled(using: &random).prefix(3).map {
      ProgressSample(
        taskID: $0.spec.id, epoch: $0.epoch, bytesDone: Int64(pick(100)), bytesTotal: pick(2) == 0 ? nil : 100, rate: 1)
    }
    try await both("renew") { store, index in try await store.store.renew(worker[index], samples: samples) }
  }

  /// Ends a lease, retires a worker or makes a task due, and then sweeps.
  private mutating func passTime() async throws {
    switch pick(4) {
    case 0:
      guard !workers.isEmpty else { return }
      let worker = workers.remove(at: pick(workers.count))
      for (store, id) in zip(stores, worker) { try await store.expireLease(id) }
    case 1:
      guard !workers.isEmpty else { return }
      let worker = workers.remove(at: pick(workers.count))
      for (store, id) in zip(stores, worker) { try await store.store.retire(id) }
    default:
      let task = task()
      for store in stores { try await store.makeDue(task) }
    }
    try await both("sweep") { store, _ in
      try await store.store.putLearnedLimitsInForce()
      return try await store.store.sweep()
    }
  }

  private mutating func limit() async throws {
    let (scope, name) = [(LimitScope.total, ""), (.kind, "noop"), (.queue, "default"), (.host, "example.com")][pick(4)]
    let limit = pick(3) == 0 ? nil : pick(5)
    for store in stores { try await store.store.setLimit(scope, name: name, to: limit) }
  }

  /// Takes the waiting events. Each task that comes with them must be as it is read, except for the progress of a run,
  /// and for the reason why a task waits for a worker, which only readers are told.
  mutating func publish() async throws {
    func whatIsStored(_ document: TaskDocument?) -> TaskDocument? {
      var document = document
      if document?.error?.code == .storageMissing { document?.error = nil }
      guard var document, document.state == .running || document.state == .publishing else { return document }
      (document.bytesDone, document.bytesTotal, document.rate, document.generation) = (0, nil, nil, 0)
      return document
    }
    for (index, store) in stores.enumerated() {
      while case let more = try await store.store.takeEvents(limit: 1 + pick(20)), !more.isEmpty {
        events[index] += more
        for event in more {
          let now = try await store.store.task(event.taskID)
          let isLater = now.map { $0.sequence > event.task?.sequence ?? 0 } ?? true
          #expect(isLater || whatIsStored(event.task) == whatIsStored(now), "\(event.kind)")
        }
      }
    }
  }

  /// Compares documents without their times, workers, counts, and the events with their numbers.
  mutating func compareEverything() async throws {
    for id in ids {
      try await both("\(id)") { store, _ in
        guard var document = try await store.store.task(id) else { return nil as TaskDocument? }
        let midnight = Timestamp(microseconds: 0)
        document.createdAt = midnight
        if document.startedAt != nil { document.startedAt = midnight }
        if document.finishedAt != nil { document.finishedAt = midnight }
        if document.runAt != nil { document.runAt = midnight }
        return document
      }
    }
    try await both("counts") { store, _ in try await store.store.counts() }
    try await both("workers") { store, _ in
      try await store.store.workers().map { "\($0.id) \($0.isLive) \($0.running) \($0.bytesPerSecond)" }
    }
    try await publish()
    try await both("events") { [events] _, index in
      Dictionary(grouping: events[index], by: \.taskID)
        .mapValues { $0.map { "\($0.sequence) \($0.kind) \($0.actor ?? "")" } }
    }
    for store in stores { #expect(try await store.store.audit() == []) }
  }
}

extension Command {
  fileprivate var isSubmit: Bool {
    if case .submit = self { true } else { false }
  }
}
