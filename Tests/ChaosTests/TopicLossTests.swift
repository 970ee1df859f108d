import Glibc
import LocalFleet
import ReelhaulClient
import ReelhaulKafka
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// Somebody deletes the fleet's topics while it works. Their records are lost, but no event that is not published yet.
@Suite(.enabled(if: TestKafka.isAvailable)) struct TopicLossTests {
  @Test("a fleet continues once its deleted topics are created again")
  func aFleetGoesOnOnceItsTopicsAreMadeAgain() async throws {
    let kafka = try await TestKafka.shared()
    let fleet = try await TestFleet.start(workers: 2, broker: .running(kafka.bootstrap))
    let topics = TopicPlan(prefix: fleet.prefix)
    fleet.origin.serve("/film.mp4", OriginFile(seed: 80, size: 40_000_000))
    let gate = fleet.origin.hold("/film.mp4", from: 20_000_000)

    // Nothing was published yet, so everything must be found at the end.
    let outbound = [topics.events, topics.tasks, topics.progress, topics.deadLetters, topics.signals]
    try await TestKafka.delete(outbound, at: kafka.bootstrap)
    let film = try await fleet.download("/film.mp4")
    try await fleet.wait(for: film, "bytes") { $0.bytesDone > 5_000_000 }
    try await fleet.eventually("the workers say what is missing") {
      outbound.allSatisfy { fleet.logs().contains($0) } && fleet.logs().contains("'reelhaul migrate'")
    }
    // A signal cannot be sent, and this delays nothing.
    try await fleet.client.pause(film)
    try await fleet.wait(for: film, .paused)
    try await fleet.client.resume(film)
    try await runNoops(fleet)

    try await TestKafka.delete([topics.commands], at: kafka.bootstrap)
    try await fleet.eventually("the workers say that commands are missing") { fleet.logs().contains(topics.commands) }
    let admin = try KafkaAdmin(KafkaConfiguration(bootstrap: kafka.bootstrap))
    let present = try await admin.metadata().topics
    #expect(topics.topics.allSatisfy { present[$0.name] == nil }, "nobody makes a topic by writing to it")

    let migrated = try await fleet.run(["migrate"])
    #expect(migrated.status == .exited(0), "\(migrated.output)")
    #expect(try await admin.differences(topics.topics) == [])
    await admin.close()
    gate.open()
    try await runNoops(fleet)
    try await fleet.wait(for: film, .succeeded)
    #expect(fleet.running.count == 2, "no worker ended")
    #expect(try await fleet.problemsOfEvents() == [])
    #expect(try await fleet.store.audit() == [])
    for worker in fleet.running { worker.kill(SIGTERM) }
    for worker in fleet.running { #expect(await worker.wait() == .exited(0), "it drains as ever") }
    await fleet.stop()
  }

  private func runNoops(_ fleet: TestFleet) async throws {
    let specs = (0..<20).map { TaskSpec(id: .make(), kind: .noop, source: "noop://host-\($0)/") }
    try await fleet.client.submit(specs)
    try await fleet.waitForSuccess(of: specs.map(\.id))
  }
}
