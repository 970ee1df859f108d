import LocalFleet
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// The connection is cut at each request in the life of a task, once before the database gets the request and once
/// before its answer arrives. The call is repeated, and the effect must be the same as without the cut.
@Suite struct CutConnectionTests {
  @Test("every call takes effect once, wherever its connection is cut", arguments: [CuttingProxy.Cut.before, .after])
  func everyCallTakesEffectOnce(_ cut: CuttingProxy.Cut) async throws {
    try await withPostgresStore { _, direct in
      let server = try await TestPostgres.shared.server()
      let proxy = try CuttingProxy(to: UInt16(server.port))
      defer { proxy.close() }
      let name = try await direct.query("select current_database()::text")[0].text(0)
      let url = server.url(database: name).replacing(":\(server.port)/", with: ":\(proxy.port)/")
      let expected = try await life(url, direct)
      var piece = 1
      while true {
        proxy.cut(cut, atPiece: piece)
        let happened = try await life(url, direct)
        if proxy.isArmed { break }
        #expect(happened == expected, "cut at piece \(piece)")
        piece += 1
      }
      // The start of the session has pieces, and most calls have more than one.
      #expect(piece > 20)
    }
  }

  /// The documents and events, as text, of seven tasks that use every function of a store.
  private func life(_ url: String, _ direct: PostgresPool) async throws -> [String] {
    let loop = EventLoop(name: "cut")
    let pool = PostgresPool(loop: loop, configuration: try PostgresConfiguration(url: url), size: 1)
    let result = await loop.task { try await Life(store: PostgresStore(pool: pool), direct: direct).run() }.result
    await pool.close()
    await Task.detached { loop.shutdown() }.value
    return try result.get()
  }
}

private struct Life {
  let store: PostgresStore
  /// A direct connection for changes that no store makes, such as ending a lease early.
  let direct: PostgresPool
  private let ids = (0..<7).map { _ in UniqueID.random() }

  init(store: PostgresStore, direct: PostgresPool) {
    self.store = store
    self.direct = direct
  }

  func run() async throws -> [String] {
    let registration = WorkerRegistration.sample
    let worker = try await insist { try await store.register(registration) }
    var submits = (0..<5).map { Command.submit(.noop(ids[$0])) }
    submits.append(.submit(.noop(ids[5], after: [ids[0]])))
    submits.append(.submit(.noop(ids[6])))
    try await command(submits + [control(.pause, 6), control(.prioritize(9), 4)])

    var claims = try await claim(worker, 4)
    try await insist {
      _ = try await store.renew(
        worker,
        samples: claims.map {
          ProgressSample(taskID: $0.spec.id, epoch: $0.epoch, bytesDone: 5, bytesTotal: 10, rate: 1)
        })
    }
    let points = claims.map { CheckpointWrite.sample($0.spec.id, epoch: $0.epoch) }
    #expect(try await insist { try await store.checkpoint(points) } == [true, true, true, true])
    try await command([control(.pause, 1), control(.cancel, 2)])
    let intents = try await insist { try await store.renew(worker, samples: []) }.intents
    #expect(Set(intents.keys) == [ids[1], ids[2]])
    try await settle(claims) { claim in
      switch claim.spec.id {
      case ids[0]: .success
      case ids[4]: .failed(.reset, retryIn: .zero)
      default: .handBack
      }
    }
    #expect(try await insist { try await store.lead(worker, seconds: 0) })

    claims = try await claim(worker, 10)
    try await settle(claims.filter { $0.spec.id != ids[3] }) {
      $0.spec.id == ids[4] ? .failed(.reset, retryIn: nil) : .success
    }
    _ = try await direct.query(
      "update worker set lease_until = now() - interval '1 s' where id = $1", .int32(worker.rawValue))
    try await insist { _ = try await store.sweep() }
    let next = WorkerRegistration.sample
    let successor = try await insist { try await store.register(next) }
    try await command([control(.retry, 4), control(.resume, 1), control(.resume, 6)])
    try await settle(claim(successor, 10)) { _ in .success }
    try await command([control(.remove, 0)])
    try await insist { try await store.retire(successor) }
    return try await outcome()
  }

  private func outcome() async throws -> [String] {
    var events: [TaskEvent] = []
    while case let more = try await store.takeEvents(limit: 3, repeating: { try await insist($0) }), !more.isEmpty {
      events += more
    }
    var lines: [String] = []
    for (number, id) in ids.enumerated() {
      let task = try await insist { try await store.task(id) }
      let state = task.map { "\($0.state) epoch \($0.epoch) attempt \($0.attempt) bytes \($0.bytesDone)" } ?? "gone"
      let its = events.filter { $0.taskID == id }.map { "\($0.sequence) \($0.kind)" }
      lines.append("\(number): \(state); \(its.joined(separator: ", "))")
    }
    return lines
  }

  /// Repeats a call while the database cannot be reached.
  @discardableResult
  private func insist<Result>(_ call: () async throws -> Result) async throws -> Result {
    for _ in 0..<100 {
      do {
        return try await call()
      } catch StoreError.unavailable {}
    }
    return try await call()
  }

  private func control(_ action: ControlAction, _ task: Int) -> Command {
    .control(.init(id: .random(), taskID: ids[task], action: action))
  }

  private func command(_ commands: [Command]) async throws {
    let outcomes = try await insist { try await store.apply(commands) }
    for outcome in outcomes { #expect(!"\(outcome)".contains("refused"), "\(outcome)") }
  }

  private func claim(_ worker: WorkerID, _ limit: Int) async throws -> [Claim] {
    let call = ClaimCalls.next()
    return try await insist { try await store.claim(worker, limit: limit, call: call) }
  }

  private func settle(_ claims: [Claim], _ outcome: (Claim) -> Settlement.Outcome) async throws {
    let ends = claims.map { Settlement(taskID: $0.spec.id, epoch: $0.epoch, outcome: outcome($0)) }
    #expect(try await insist { try await store.settle(ends) }.allSatisfy { $0 })
  }
}
