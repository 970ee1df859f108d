import Glibc
import LocalFleet
import ReelhaulClient
import ReelhaulDigest
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// PostgreSQL and Kafka stop and come back. The fleet recovers by itself, and nothing is lost.
@Suite(.serialized) struct ServiceRestartTests {
  @Test("downloads succeed although PostgreSQL crashes")
  func postgresCrashes() async throws {
    let postgres = try await RestartablePostgres()
    let fleet = try await TestFleet.start(workers: 2, postgres: postgres.url, leaseSeconds: 3)
    let size: Int64 = 60_000_000
    var tasks: [(UniqueID, OriginFile, String)] = []
    for number in 0..<6 {
      let path = "/crash-\(number).mp4"
      let file = OriginFile(seed: UInt64(20 + number), size: size)
      fleet.origin.serve(path, file)
      tasks.append((try await fleet.download(path) { $0.rate = 15_000_000 }, file, path))
    }
    try await fleet.wait(for: tasks[0].0, "some bytes") { $0.bytesDone > 10_000_000 }
    for _ in 0..<2 {
      await postgres.stop(.immediate)
      // Commands that are produced while the database is down wait in Kafka.
      let path = "/during-\(tasks.count).mp4"
      let file = OriginFile(seed: UInt64(40 + tasks.count), size: 1_000_000)
      fleet.origin.serve(path, file)
      tasks.append((try await fleet.download(path), file, path))
      try await postgres.start()
    }
    for (task, file, path) in tasks {
      try await fleet.wait(for: task, .succeeded)
      #expect(
        try digest(.sha256, of: TestFleet.contents(fleet.path(path))) == file.content.sha256(size: file.size))
    }
    #expect(try await fleet.store.audit() == [])
    await fleet.stop()
    await postgres.remove()
  }

  @Test("downloads continue while Kafka restarts", .enabled(if: TestKafka.isAvailable)) func kafkaRestarts()
    async throws
  {
    let directory = try TemporaryDirectory(prefix: "reelhaul-kafka")
    let kafka = try await TestKafka.start(in: directory.path)
    let fleet = try await TestFleet.start(workers: 2, broker: .running(kafka.bootstrap))
    let size: Int64 = 60_000_000
    let file = OriginFile(seed: 60, size: size)
    fleet.origin.serve("/kafka.mp4", file)
    let end = fleet.origin.hold("/kafka.mp4", from: size / 2)
    let task = try await fleet.download("/kafka.mp4") { $0.rate = 12_000_000 }
    try await fleet.wait(for: task, "some bytes") { $0.bytesDone > 5_000_000 }
    await kafka.kill()
    // Running tasks continue without a broker.
    let before = try #require(try await fleet.store.task(task)).bytesDone
    end.open()
    try await fleet.wait(for: task, "progress without Kafka") { $0.bytesDone > before }
    try await kafka.start()
    fleet.origin.serve("/after.mp4", file)
    let after = try await fleet.download("/after.mp4")
    for (id, path) in [(task, "/kafka.mp4"), (after, "/after.mp4")] {
      try await fleet.wait(for: id, .succeeded)
      #expect(try digest(.sha256, of: TestFleet.contents(fleet.path(path))) == file.content.sha256(size: size))
    }
    #expect(try await fleet.problemsOfEvents() == [])
    await fleet.stop()
    await kafka.stop()
  }

  /// A broker that hangs, with all its connections.
  @Test("downloads continue while Kafka is frozen", .enabled(if: TestKafka.isAvailable)) func kafkaFreezes()
    async throws
  {
    let directory = try TemporaryDirectory(prefix: "reelhaul-kafka")
    let kafka = try await TestKafka.start(in: directory.path)
    let fleet = try await TestFleet.start(workers: 2, broker: .running(kafka.bootstrap))
    let file = OriginFile(seed: 61, size: 60_000_000)
    fleet.origin.serve("/frozen.mp4", file)
    fleet.origin.serve("/during.mp4", file)
    let task = try await fleet.download("/frozen.mp4") { $0.rate = 12_000_000 }
    try await fleet.wait(for: task, "some bytes") { $0.bytesDone > 5_000_000 }
    let pid = try #require(await kafka.pid)
    kill(pid, SIGSTOP)
    defer { kill(pid, SIGCONT) }
    // Running tasks end without a broker. Commands that are produced meanwhile wait in their producer.
    async let during = fleet.download("/during.mp4")
    try await fleet.wait(for: task, .succeeded)
    kill(pid, SIGCONT)
    try await fleet.wait(for: try await during, .succeeded)
    for path in ["/frozen.mp4", "/during.mp4"] {
      #expect(try digest(.sha256, of: TestFleet.contents(fleet.path(path))) == file.content.sha256(size: file.size))
    }
    #expect(try await fleet.problemsOfEvents() == [])
    #expect(try await fleet.store.audit() == [])
    await fleet.stop()
    await kafka.stop()
  }
}
