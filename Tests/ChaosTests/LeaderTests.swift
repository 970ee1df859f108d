import Glibc
import LocalFleet
import ReelhaulClient
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// The leader of the relay cannot reach Kafka, or does not run at all, for longer than its term, while its messages are
/// on their way. Another worker leads and publishes newer documents. Then the messages of the former leader arrive.
@Suite(.serialized, .enabled(if: TestKafka.isAvailable)) struct LeaderTests {
  @Test("messages of a former relay leader change nothing", arguments: [false, true]) func aFormerLeaderChangesNothing(
    isFrozen: Bool
  ) async throws {
    let kafka = try await ProxiedKafka.start()
    let fleet = try await TestFleet.start(workers: 0, broker: .running(kafka.node.bootstrap), leaseSeconds: 15)
    let former = try fleet.startWorker(["REELHAUL_KAFKA": kafka.proxied])
    try await expectPublished(Self.spec(), by: former, fleet)
    let next = try fleet.startWorker()
    try await fleet.eventually("both are there") { try await fleet.store.workers().count { $0.isLive } == 2 }

    kafka.proxy.setSilent(true)
    // The tasks are written directly to the database, because the way through Kafka is closed for one worker.
    let specs = (0..<200).map { _ in Self.spec(isPaused: true) }
    _ = try await fleet.store.apply(specs.map { .submit($0) })
    // Long enough for the former leader to read them and give them to its producer.
    try await fleet.loop.sleep(for: .seconds(1))
    if isFrozen { former.kill(SIGSTOP) }
    _ = try await fleet.store.apply(
      specs.map { .control(.init(id: .make(), taskID: $0.id, action: .resume)) })
    try await fleet.eventually("all are done") { try await fleet.store.counts() == [.succeeded: specs.count + 1] }
    try await expectPublished(nil, by: next, fleet)
    kafka.proxy.setSilent(false)
    if isFrozen { former.kill(SIGCONT) }

    // It leads again, so its earlier messages have arrived or never will.
    next.kill(SIGTERM)
    #expect(await next.wait() == .exited(0))
    try await expectPublished(Self.spec(), by: former, fleet)
    #expect(try await fleet.problemsOfEvents() == [])
    #expect(try await fleet.store.audit() == [])
    await fleet.stop()
    await kafka.stop()
  }

  private static func spec(isPaused: Bool = false) -> TaskSpec {
    var spec = TaskSpec(id: .make(), kind: .noop, source: "noop://host/")
    spec.paused = isPaused
    return spec
  }

  /// Waits until every event is published, also those of `spec`, and `worker` leads.
  private func expectPublished(_ spec: TaskSpec?, by worker: ChildProcess, _ fleet: TestFleet) async throws {
    if let spec {
      _ = try await fleet.store.apply([.submit(spec)])
      try await fleet.wait(for: spec.id, .succeeded)
    }
    try await fleet.eventually("its events are published by \(worker.pid)") {
      let leader = try await fleet.pool.query(
        "select w.pid from leader l join worker w on w.id = l.worker_id where l.role = 'relay' and l.until > now()")
      guard try leader.first?.int32(0) == worker.pid else { return false }
      return try await fleet.pool.query("select from outbox limit 1").isEmpty
    }
  }
}
