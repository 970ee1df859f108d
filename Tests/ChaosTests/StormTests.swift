import Glibc
import LocalFleet
import ReelhaulClient
import ReelhaulDigest
import ReelhaulKafka
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// Everything happens at once: workers are killed and frozen, PostgreSQL crashes, Kafka is killed, and people pause,
/// resume, cancel and prioritise at random. After that, every file is correct or its task canceled, and nothing is left
/// over.
@Suite(.serialized, .enabled(if: TestKafka.isAvailable)) struct StormTests {
  /// `REELHAUL_STORM_SEED` repeats the decisions of a storm. Their moments depend on the machine.
  @Test("a storm of faults loses nothing and does nothing twice")
  func nothingIsLostOrDoneTwice() async throws {
    let seed = getenv("REELHAUL_STORM_SEED").flatMap { UInt64(String(cString: $0)) } ?? .random(in: 0..<1 << 32)
    print("storm: REELHAUL_STORM_SEED=\(seed)")
    let storm = try await Storm(seed: seed)
    try await storm.rage(for: LongTests.areWanted ? .seconds(330) : .seconds(20))
    try await storm.settle()
    try await storm.check()
    await storm.end()
  }
}

private final class Storm: Sendable {
  private struct Film {
    var path: String
    var sha256: [UInt8]
  }

  private let seed: UInt64
  private let directory: TemporaryDirectory
  private let postgres: RestartablePostgres
  private let kafka: ApacheKafka
  private let nginx: NginxOrigin
  private let store: StoreServer
  private let fleet: TestFleet
  private let films: [Film]
  private let specs: [(task: TaskSpec, film: Film)]
  private let counts = Lock<[String: Int]>([:])

  init(seed: UInt64) async throws {
    self.seed = seed
    directory = try TemporaryDirectory(prefix: "reelhaul-storm")
    let films = try await Self.makeFilms(20, below: "\(directory.path)/films", largest: LongTests.areWanted ? 20 : 8)
    self.films = films
    try makeDirectories("\(directory.path)/nginx")
    nginx = try await NginxOrigin.start(serving: "\(directory.path)/films", files: "\(directory.path)/nginx")
    store = try StoreServer()
    try store.account.writeCredentials(to: "\(directory.path)/credentials.json")
    postgres = try await RestartablePostgres()
    kafka = try await TestKafka.start(in: "\(directory.path)/kafka")
    fleet = try await TestFleet.start(
      workers: 4, broker: .running(kafka.bootstrap), postgres: await postgres.url, leaseSeconds: 3,
      environment: [
        "REELHAUL_CONCURRENCY": "8", "REELHAUL_CREDENTIALS": "\(directory.path)/credentials.json",
      ])
    let nginx = nginx
    specs = (0..<(LongTests.areWanted ? 200 : 60)).map { number in
      let film = films[number % films.count]
      var spec = TaskSpec(
        id: .make(), kind: .download, source: nginx.url(film.path), destination: "storage://default/\(number).mp4")
      spec.rate = 4_000_000
      // Each sixth is a copy to S3, in parts if it has more than one.
      if number.isMultiple(of: 6) {
        spec.kind = .copy
        spec.destination = "s3://films/\(number).mp4"
        spec.credential = "s3"
        spec.parameters = Array(#"{"partSize":5242880}"#.utf8)
      }
      return (spec, film)
    }
  }

  private static func makeFilms(_ count: Int, below path: String, largest megabytes: Int) async throws -> [Film] {
    try makeDirectories(path)
    var films: [Film] = []
    for number in 0..<count {
      let size = 1_000_000 + number * (megabytes - 1) * 1_000_000 / max(1, count - 1)
      let made = try ChildProcess("sh", ["-c", "head -c \(size) /dev/urandom > \(path)/\(number).mp4"])
      guard await made.wait() == .exited(0) else { throw TestFleetError("a film cannot be made") }
      films.append(
        Film(path: "/\(number).mp4", sha256: digest(.sha256, of: try TestFleet.contents("\(path)/\(number).mp4"))))
    }
    return films
  }

  private func count(_ what: String) {
    counts.withLock { $0[what, default: 0] += 1 }
  }

  // MARK: The storm

  func rage(for duration: Duration) async throws {
    let end = Clocks.boottime() + duration.nanoseconds
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await self.submit(until: end) }
      group.addTask { try await self.every(1000...3000, until: end, 1) { await self.strikeWorker(&$0) } }
      group.addTask { try await self.every(5000...12000, until: end, 2) { try await self.crashPostgres(&$0) } }
      group.addTask { try await self.every(8000...20000, until: end, 3) { try await self.killKafka(&$0) } }
      group.addTask { try await self.every(20...200, until: end, 4) { await self.command(&$0) } }
      try await group.waitForAll()
    }
    for worker in fleet.running { worker.kill(SIGCONT) }
    print(
      "storm: \(counts.withLock { $0.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ") })"
    )
  }

  private func every(
    _ milliseconds: ClosedRange<Int>, until end: Int64, _ stream: UInt64,
    _ act: @Sendable (inout SplitMix64) async throws -> Void
  ) async throws {
    var random = SplitMix64(seed: seed &+ stream << 32)
    while true {
      let pause = Duration.milliseconds(Int.random(in: milliseconds, using: &random))
      guard Clocks.boottime() + pause.nanoseconds < end else { return }
      try await fleet.loop.sleep(for: pause)
      try await act(&random)
    }
  }

  private func submit(until end: Int64) async throws {
    let pause = Duration.nanoseconds((end - Clocks.boottime()) * 2 / 3 / Int64(specs.count))
    for (spec, _) in specs {
      while (try? await fleet.client.submit(spec)) == nil {
        try Task.checkCancellation()
        count("submits repeated")
      }
      try await fleet.loop.sleep(for: pause)
    }
  }

  private func strikeWorker(_ random: inout SplitMix64) async {
    guard let worker = fleet.running.randomElement(using: &random) else { return }
    if Int.random(in: 0..<4, using: &random) == 0 {
      worker.kill(SIGSTOP)
      try? await fleet.loop.sleep(for: .milliseconds(Int.random(in: 100...8000, using: &random)))
      worker.kill(SIGCONT)
      count("workers frozen")
    } else {
      worker.kill(SIGKILL)
      _ = await worker.wait()
      count("workers killed")
      _ = try? fleet.startWorker()
    }
  }

  private func crashPostgres(_ random: inout SplitMix64) async throws {
    await postgres.stop(.immediate)
    try await fleet.loop.sleep(for: .milliseconds(Int.random(in: 0...3000, using: &random)))
    try await postgres.start()
    count("crashes of PostgreSQL")
  }

  private func killKafka(_ random: inout SplitMix64) async throws {
    await kafka.kill()
    try await fleet.loop.sleep(for: .milliseconds(Int.random(in: 0...3000, using: &random)))
    // On a busy machine it may not be ready in time.
    while (try? await kafka.start()) == nil { try Task.checkCancellation() }
    count("kills of Kafka")
  }

  private func command(_ random: inout SplitMix64) async {
    guard let (task, _) = specs.randomElement(using: &random) else { return }
    let number = Int.random(in: 0..<20, using: &random)
    switch number {
    case 0: try? await fleet.client.cancel(task.id)
    case 1...6: try? await fleet.client.pause(task.id)
    case 7...14: try? await fleet.client.resume(task.id)
    default: try? await fleet.client.prioritize(task.id, priority: number)
    }
    count("commands")
  }

  // MARK: After it

  /// Resumes paused tasks until every task is over.
  func settle() async throws {
    do {
      try await fleet.eventually("every task is over: \(fleet.prefix)", within: .seconds(600)) {
        let paused = try await fleet.store.tasks(TaskFilter(state: .paused, limit: 1000))
        for task in paused { try await fleet.client.resume(task.spec.id) }
        let counts = try await fleet.store.counts()
        return counts.keys.allSatisfy(\.isFinal) && counts.values.reduce(0, +) == specs.count
      }
    } catch {
      let known = try await fleet.store.tasks(specs.map(\.0.id))
      for (spec, _) in specs where known[spec.id]?.state.isFinal != true {
        print("storm: not over: \(spec.id): \(known[spec.id].map { "\($0)" } ?? "unknown")")
      }
      let sessions =
        "select pid, state, wait_event, xact_start, query from pg_stat_activity where xact_start is not null"
      for row in try await fleet.pool.query(PostgresStatement("select (s.*)::text from (\(sessions)) s")) {
        print("storm: session: \(try row.text(0))")
      }
      print("storm: doctor: \(try await fleet.run(["doctor", "--audit"]).output)")
      throw error
    }
  }

  func check() async throws {
    for (spec, film) in specs {
      let task = try #require(try await fleet.store.task(spec.id))
      #expect(task.state == .succeeded || task.state == .canceled, "\(task)")
      let name = spec.destination?.split(separator: "/").last ?? ""
      let path = fleet.path("/\(name)")
      let file = spec.kind == .copy ? store.objects["films/\(name)"]?.bytes : try? TestFleet.contents(path)
      #expect(file != nil || task.state == .canceled)
      // A cancel may come after the file appears and before this is recorded. The file is complete then too.
      if let file { #expect(digest(.sha256, of: file) == film.sha256, "\(path)") }
      count("\(task.state)")
    }
    #expect(try await fleet.problemsOfEvents() == [])
    #expect(try await fleet.store.audit() == [])
    for table in ["run", "ready", "delayed", "intent", "outbox"] {
      #expect(try await fleet.pool.query(PostgresStatement("select from \(table)")).isEmpty, "\(table) is not empty")
    }
    try await checkStaging()
    try await fleet.eventually("no upload is left open") { store.uploads.isEmpty }
    print("storm: \(counts.withLock { $0 })")
  }

  /// The sweep of a new worker removes all staging files, once they are old enough.
  private func checkStaging() async throws {
    let path = fleet.path("/.reelhaul/staging")
    let staging = try FileDescriptor.open(path, O_RDONLY | O_DIRECTORY)
    let left = try staging.entries()
    print("storm: \(left.count) staging files left")
    var old = [timespec(tv_sec: time(nil) - 120, tv_nsec: 0), timespec(tv_sec: time(nil) - 120, tv_nsec: 0)]
    for name in left { utimensat(AT_FDCWD, "\(path)/\(name)", &old, 0) }
    try fleet.startWorker()
    try await fleet.eventually("the staging files are swept") { try staging.entries().isEmpty }
  }

  func end() async {
    await fleet.stop()
    await nginx.close()
    store.close()
    await kafka.stop()
    await postgres.remove()
  }
}
