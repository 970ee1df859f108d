import CommandLineKit
import ReelhaulClient
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore

/// Four workers that claim all the time, straight on the store. While a worker claims, it settles what it claimed before.
struct ClaimLoad {
  var name: String
  /// Milliseconds.
  var target: Double
  var queues: Int
  var hosts: Int
  /// How many tasks of one host, of one queue, and in total may run at once; nil for no limits.
  var caps: (host: Int, queue: Int, total: Int)?

  static let few = ClaimLoad(name: "4 queues, 4 hosts", target: 25, queues: 4, hosts: 4)
  static let many = ClaimLoad(
    name: "200 queues, 500 hosts, caps", target: 60, queues: 200, hosts: 500, caps: (8, 60, 2000))

  private static let claimers = 4
  private static let tasksPerClaim = 100
  private static let rounds = 5
  /// Of each claimer in a round.
  private static let claims = 100

  /// The percentiles of each round, in milliseconds.
  func measure(_ bench: BenchContext) async throws -> (p50: [Double], p99: [Double]) {
    // No worker of the fleet takes part.
    let fleet = try await BenchFleet.start(bench, workers: 0)
    let rounds = try await fleet.withPool(size: 2 * Self.claimers + 1) { pool in
      let store = PostgresStore(pool: pool)
      try await load(store)
      var claimers: [Claimer] = []
      for _ in 0..<Self.claimers { claimers.append(try await Claimer(store)) }
      // What the relay would do. Publishing is measured elsewhere.
      let relay = Task {
        while !Task.isCancelled {
          _ = try await pool.query(Self.discard)
          try await Task.sleep(for: .milliseconds(100))
        }
      }
      var rounds: [[Double]] = []
      // The first round only warms up.
      for round in 0...Self.rounds {
        let times = try await withThrowingTaskGroup(of: [Double].self) { group in
          for claimer in claimers {
            group.addTask { try await claimer.claim(Self.claims, of: Self.tasksPerClaim) }
          }
          return try await group.reduce([], +)
        }
        if round > 0 { rounds.append(times.sorted()) }
      }
      relay.cancel()
      _ = await relay.result
      return rounds
    }
    await fleet.stop()
    return (rounds.map { $0[$0.count / 2] }, rounds.map { $0[$0.count * 99 / 100] })
  }

  private static let discard = PostgresStatement("delete from outbox", writes: true)

  /// Twice as many tasks as are claimed, so that no lane runs dry.
  private func load(_ store: PostgresStore) async throws {
    let count = 2 * (1 + Self.rounds) * Self.claimers * Self.claims * Self.tasksPerClaim
    for first in stride(from: 0, to: count, by: 5000) {
      let specs = (first..<min(first + 5000, count)).map { number in
        // Each queue has tasks of each host.
        TaskSpec(
          id: .make(), kind: .download, source: "http://host-\(number / queues % hosts).example/film.mp4",
          destination: "storage://default/\(number).mp4", queue: "queue-\(number % queues)")
      }
      _ = try await store.apply(specs.map { .submit($0) })
    }
    guard let caps else { return }
    try await store.setLimit(.total, name: "", to: caps.total)
    for host in 0..<hosts { try await store.setLimit(.host, name: "host-\(host).example", to: caps.host) }
    for queue in 0..<queues { try await store.setLimit(.queue, name: "queue-\(queue)", to: caps.queue) }
  }
}

private actor Claimer {
  private let store: PostgresStore
  private let id: WorkerID
  private var call: Int64 = 0

  init(_ store: PostgresStore) async throws {
    self.store = store
    id = try await store.register(
      WorkerRegistration(
        boot: .make(), host: "bench", pid: 1, leaseSeconds: 3600, kinds: [.download], volumes: ["default": .make()]))
  }

  /// Returns how long each claim took, in milliseconds.
  func claim(_ count: Int, of tasks: Int) async throws -> [Double] {
    var times: [Double] = []
    var settling: Task<Void, any Error>?
    for _ in 0..<count {
      call += 1
      let start = Clocks.boottime()
      let claims = try await store.claim(id, limit: tasks, call: call)
      times.append(Double(Clocks.boottime() - start) / 1e6)
      guard claims.count == tasks else { throw WorkError("a claim got \(claims.count) of \(tasks) tasks") }
      try await settling?.value
      settling = Task { [store] in
        _ = try await store.settle(
          claims.map {
            Settlement(taskID: $0.spec.id, epoch: $0.epoch, outcome: .succeeded(sha256: nil, bytes: 1))
          })
      }
    }
    try await settling?.value
    return times
  }
}
