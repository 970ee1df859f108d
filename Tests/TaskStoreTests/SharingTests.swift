import Foundation
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// Each start is shared, by weight, among the queues that could have had it.
///
/// `REELHAUL_SHARING_SEEDS=100..300` chooses other seeds for PostgreSQL.
@Suite struct SharingTests {
  private static let postgresSeeds = otherSeeds ?? 0..<32
  private static let manySeeds = otherSeeds ?? 0..<8
  private static var otherSeeds: Range<UInt64>? {
    let bounds = ProcessInfo.processInfo.environment["REELHAUL_SHARING_SEEDS"]?.split(separator: ".") ?? []
    guard bounds.count == 2, let first = UInt64(bounds[0]), let end = UInt64(bounds[1]), first < end else { return nil }
    return first..<end
  }

  @Test("queues of a random fleet have their shares, in memory", arguments: 0..<8 as Range<UInt64>)
  func sharesInMemory(seed: UInt64) async throws {
    try await share(.memory, seed)
  }

  @Test("queues of a random fleet have their shares, in PostgreSQL", arguments: postgresSeeds)
  func sharesInPostgreSQL(seed: UInt64) async throws {
    try await share(.postgres, seed)
  }

  @Test("many queues have their shares, in PostgreSQL", arguments: manySeeds)
  func manyShareInPostgreSQL(seed: UInt64) async throws {
    try await share(.postgres, seed, among: [17, 20, 24, 40], patience: 4)
  }

  @Test("many queues of many hosts have their shares, in PostgreSQL", arguments: manySeeds)
  func manyOfManyHostsShareInPostgreSQL(seed: UInt64) async throws {
    try await share(.postgres, seed, among: [17, 24, 40, 80], hosts: [40, 60], patience: 4)
  }

  /// `patience` is how many starts a queue may earn before it has one.
  private func share(
    _ kind: StoreKind, _ seed: UInt64, among counts: [Int] = [2, 3, 3, 4, 5, 6], hosts: [Int] = [1, 1, 2, 4],
    patience: Double = 3
  ) async throws {
    try await withStore(kind) { fixture in
      var fleet = Fleet(fixture, seed: seed, counts: counts, hosts: hosts)
      try await fleet.start()
      for _ in 0..<300 where fleet.ledger.starts.count < 300 { try await fleet.step() }
      let ledger = fleet.ledger
      let unfair = ledger.unfairWindows()
      #expect(unfair == [], "\(fleet.description)")
      #expect(ledger.longestWait <= patience + 1e-6, "\(fleet.description)")
    }
  }
}

/// For each start, the queues that could have had it and the queue that had it.
private struct Ledger {
  struct Start {
    var queue: Int
    /// The share of each queue, by weight; 0 if the queue could not have had the start.
    var earned: [Double]
  }

  let weights: [Double]
  private(set) var starts: [Start] = []
  /// The starts that each queue has earned but not had.
  private(set) var owed: [Double]
  /// The most starts that a queue earned in a row before it had one.
  private(set) var longestWait = 0.0
  private var waited: [Double]

  init(weights: [Double]) {
    self.weights = weights
    owed = weights.map { _ in 0 }
    waited = owed
  }

  mutating func record(_ queue: Int, among due: [Int]) {
    let total = due.reduce(0) { $0 + weights[$1] }
    var earned = weights.map { _ in 0.0 }
    for each in due { earned[each] = weights[each] / total }
    for each in due {
      owed[each] += earned[each]
      waited[each] += earned[each]
    }
    owed[queue] -= 1
    longestWait = max(longestWait, waited.max() ?? 0)
    waited[queue] = 0
    starts.append(Start(queue: queue, earned: earned))
  }

  /// The windows of 40 starts in which a queue could run all the time but had too few or too many: the difference to
  /// its share is more than two tasks and 15 %. The worst come first, at most 4.
  func unfairWindows() -> [String] {
    var unfair: [(by: Double, text: String)] = []
    for first in starts.indices.dropLast(39) {
      let window = starts[first..<first + 40]
      for queue in weights.indices where window.allSatisfy({ $0.earned[queue] > 0 }) {
        let had = Double(window.count { $0.queue == queue })
        let share = window.reduce(0) { $0 + $1.earned[queue] }
        if abs(had - share) > max(2, 0.15 * share) + 1e-6 {
          unfair.append((abs(had - share), "queue \(queue) had \(Int(had)) of \(share) from start \(first)"))
        }
      }
    }
    return unfair.sorted { $0.by > $1.by }.prefix(4).map(\.text)
  }
}

/// A random fleet, and the state that a store should have of it.
private struct Fleet: CustomStringConvertible {
  struct Lane {
    var kind: TaskKind
    var host: String
    var storage: String
    var priority: Int
    /// How many tasks wait in it while its queue gets new tasks.
    var depth: Int
    var waiting = 0
  }

  struct Queue {
    var weight: Double
    var lanes: [Lane]
    /// If false, the queue gets no new tasks and becomes empty.
    var isFed = true
  }

  struct Worker {
    var kinds: [TaskKind]
    var storages: [String]
    var slots: Int
    var id: WorkerID?
    var running: [Claim] = []
  }

  struct Bucket: Hashable {
    var scope: LimitScope
    var name: String
  }

  private let fixture: StoreFixture
  private let seed: UInt64
  /// How many queues it may have.
  private let counts: [Int]
  /// How many hosts it may have.
  private let hostCounts: [Int]
  private var random: SplitMix64
  private var queues: [Queue] = []
  private var workers: [Worker] = []
  private var limits: [Bucket: Int] = [:]
  private var used: [Bucket: Int] = [:]
  /// Limits that are low for a while, and their values at other times.
  private var held: [(bucket: Bucket, limit: Int?)] = []
  private var churns = false
  private(set) var ledger = Ledger(weights: [])

  init(_ fixture: StoreFixture, seed: UInt64, counts: [Int], hosts: [Int]) {
    self.fixture = fixture
    self.counts = counts
    hostCounts = hosts
    self.seed = seed
    random = SplitMix64(seed: seed)
  }

  var description: String {
    """
    seed \(seed), limits \(limits.map { "\($0.scope) \($0.name): \($1)" }), queues \
    \(queues.map { "\($0.weight) \($0.lanes.map { "\($0.priority) \($0.kind.rawValue) \($0.host) \($0.storage) \($0.depth)" })" }), \
    workers \(workers.map { "\($0.kinds.map(\.rawValue)) \($0.storages) \($0.slots)" })
    """
  }

  private mutating func pick<Element>(_ elements: [Element]) -> Element {
    elements[Int.random(in: 0..<elements.count, using: &random)]
  }

  private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

  // MARK: The fleet

  mutating func start() async throws {
    let kinds = Array([TaskKind.noop, .download].prefix(pick([1, 2])))
    let hosts = (0..<pick(hostCounts)).map { "host\($0)" }
    let storages = Array(["", "nas0", "nas1"].prefix(pick([1, 1, 3])))
    let priorities = pick([[0], [0], [0, 1]])
    let depths = pick([[12], [1, 2], [1, 12]])
    for _ in 0..<pick(counts) {
      var lanes: [Lane] = []
      for _ in 0..<pick([1, 1, 2, 4]) {
        let lane = Lane(
          kind: pick(kinds), host: pick(hosts), storage: pick(storages), priority: pick(priorities), depth: pick(depths)
        )
        if !lanes.contains(where: {
          ($0.kind, $0.host, $0.storage, $0.priority) == (lane.kind, lane.host, lane.storage, lane.priority)
        }) {
          lanes.append(lane)
        }
      }
      queues.append(Queue(weight: pick([1, 1, 1, 2, 3, 4, 0.5]), lanes: lanes))
    }
    churns = chance(50)
    ledger = Ledger(weights: queues.map(\.weight))

    let count = pick([1, 3])
    let areAlike = chance(60)
    for _ in 0..<count {
      workers.append(
        Worker(
          kinds: areAlike ? kinds : pick([kinds] + kinds.map { [$0] }),
          storages: areAlike ? storages : pick([storages] + storages.map { [$0] }), slots: pick([4, 8, 16, 64])))
    }
    for index in workers.indices {
      workers[index].id = try await fixture.worker(
        kinds: workers[index].kinds, volumes: workers[index].storages.filter { !$0.isEmpty })
    }

    let values: [Int?] = [1, 2, 4, 6, 64, nil]
    for (index, queue) in queues.enumerated() {
      try await fixture.store.setWeight(queue: "q\(index)", to: queue.weight)
      if chance(30) { try await limit(Bucket(scope: .queue, name: "q\(index)"), to: pick(values)) }
    }
    if chance(40) { try await limit(Bucket(scope: .total, name: ""), to: pick(values)) }
    for kind in kinds where chance(40) {
      try await limit(Bucket(scope: .kind, name: kind.rawValue), to: pick(values))
    }
    for host in hosts where chance(70) { try await limit(Bucket(scope: .host, name: host), to: pick(values)) }
    for storage in storages where chance(40) {
      try await limit(Bucket(scope: .storage, name: storage), to: pick(values))
    }
  }

  private mutating func limit(_ bucket: Bucket, to limit: Int?) async throws {
    limits[bucket] = limit
    try await fixture.store.setLimit(bucket.scope, name: bucket.name, to: limit)
  }

  /// Time passes: tasks come, some end, a limit is set or removed, and the workers claim.
  mutating func step() async throws {
    if churns, chance(8) {
      let queue = Int.random(in: 0..<queues.count, using: &random)
      queues[queue].isFed.toggle()
    }
    if held.isEmpty, chance(3) {
      let bucket = pick(buckets(Int.random(in: 0..<queues.count, using: &random), 0))
      held.append((bucket, limits[bucket]))
      try await limit(bucket, to: 0)
    } else if chance(15), let (bucket, limit) = held.popLast() {
      try await self.limit(bucket, to: limit)
    }
    try await feed()
    for index in workers.indices.shuffled(using: &random) {
      try await end(pick([1, 1, 2, 4]), of: index)
      try await claim(index)
    }
  }

  private mutating func feed() async throws {
    var specs: [TaskSpec] = []
    for queue in queues.indices where queues[queue].isFed {
      for lane in queues[queue].lanes.indices
      where queues[queue].lanes[lane].waiting <= queues[queue].lanes[lane].depth / 2 {
        let its = queues[queue].lanes[lane]
        for _ in its.waiting..<its.depth {
          specs.append(
            TaskSpec(
              id: UniqueID(high: random.next(), low: random.next()), kind: its.kind, source: "https://\(its.host)/a",
              destination: its.storage.isEmpty ? nil : "storage://\(its.storage)/a", priority: its.priority,
              queue: "q\(queue)"))
        }
        queues[queue].lanes[lane].waiting = its.depth
      }
    }
    if !specs.isEmpty { _ = try await fixture.store.apply(specs.map(Command.submit)) }
  }

  /// Ends up to `count` of a worker's tasks.
  private mutating func end(_ count: Int, of worker: Int) async throws {
    var ended: [Claim] = []
    for _ in 0..<min(count, workers[worker].running.count) {
      ended.append(
        workers[worker].running.remove(at: Int.random(in: 0..<workers[worker].running.count, using: &random)))
    }
    guard !ended.isEmpty else { return }
    _ = try await fixture.store.settle(
      ended.map { Settlement(taskID: $0.spec.id, epoch: $0.epoch, outcome: .success) })
    for claim in ended {
      let (queue, lane) = place(of: claim)
      for bucket in buckets(queue, lane) { used[bucket, default: 0] -= 1 }
    }
  }

  // MARK: Claims

  private mutating func claim(_ index: Int) async throws {
    let free = workers[index].slots - workers[index].running.count
    guard free > 0, let id = workers[index].id else { return }
    let claims = try await fixture.store.claim(id, limit: free)
    workers[index].running += claims
    // The starts of one call come at the same time. They are counted in the order that is fairest; each one finds the
    // limits as the earlier ones leave them.
    var left = claims.map { place(of: $0) }
    while !left.isEmpty {
      let due = due(for: index)
      let highest = left.map { queues[$0.queue].lanes[$0.lane].priority }.max()
      let next = left.indices
        .filter {
          due.contains(left[$0].queue) && isOpen(left[$0], for: index)
            && queues[left[$0].queue].lanes[left[$0].lane].priority == highest
        }
        .max {
          ledger.owed[left[$0].queue] + share(left[$0].queue, due) < ledger.owed[left[$1].queue]
            + share(left[$1].queue, due)
        }
      guard let next else {
        Issue.record("a task started that could not run: \(left), \(description)")
        return
      }
      let (queue, lane) = left.remove(at: next)
      ledger.record(queue, among: due)
      queues[queue].lanes[lane].waiting -= 1
      for bucket in buckets(queue, lane) { used[bucket, default: 0] += 1 }
    }
    #expect(claims.count == free || due(for: index).isEmpty, "a task could run but was not claimed")
  }

  private func share(_ queue: Int, _ due: [Int]) -> Double {
    queues[queue].weight / due.reduce(0) { $0 + queues[$1].weight }
  }

  private func place(of claim: Claim) -> (queue: Int, lane: Int) {
    let key = LaneKey(claim.spec)
    for (queue, its) in queues.enumerated() where "q\(queue)" == key.queue {
      for (lane, lanes) in its.lanes.enumerated()
      where (lanes.kind, lanes.host, lanes.storage, lanes.priority) == (key.kind, key.host, key.storage, key.priority) {
        return (queue, lane)
      }
    }
    fatalError("\(key)")
  }

  private func buckets(_ queue: Int, _ lane: Int) -> [Bucket] {
    let its = queues[queue].lanes[lane]
    return [
      Bucket(scope: .total, name: ""), Bucket(scope: .kind, name: its.kind.rawValue),
      Bucket(scope: .queue, name: "q\(queue)"), Bucket(scope: .host, name: its.host),
      Bucket(scope: .storage, name: its.storage),
    ]
  }

  /// Whether a task waits in this lane, the worker can run it, and every bucket has room.
  private func isOpen(_ place: (queue: Int, lane: Int), for worker: Int) -> Bool {
    let lane = queues[place.queue].lanes[place.lane]
    return lane.waiting > 0 && workers[worker].kinds.contains(lane.kind)
      && (lane.storage.isEmpty || workers[worker].storages.contains(lane.storage))
      && buckets(place.queue, place.lane).allSatisfy { used[$0, default: 0] < limits[$0] ?? .max }
  }

  /// The queues that could have the worker's next start: those with an open lane of the highest priority.
  private func due(for worker: Int) -> [Int] {
    let open = queues.indices.map { queue in
      queues[queue].lanes.indices.filter { isOpen((queue, $0), for: worker) }.map { queues[queue].lanes[$0].priority }
    }
    let highest = open.joined().max()
    return queues.indices.filter { open[$0].contains { $0 == highest } }
  }
}
