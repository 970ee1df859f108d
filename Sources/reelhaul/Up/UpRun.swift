import CommandLineKit
import Demo
import Glibc
import LocalFleet
import OTLP
import ReelhaulClient
import ReelhaulKafka
import ReelhaulPostgres
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore
import TransferEngine
import WorkerCore
import WorkerOptions

/// `reelhaul up`: starts the fleet, reports when it is ready, and stops it in order.
struct UpRun {
  private static let readiness: Duration = .seconds(60)
  /// How long workers may apply no command before the remaining ones are given up.
  private static let applying: Duration = .seconds(15)

  private let context: Context
  private let announcer: Announcer
  private let stop = StopSignal(hangup: true)

  init(_ context: Context) {
    var context = context
    // Ctrl-C also ends the reader of a pipe (`up | tee log`). The fleet must still be stopped in order.
    context.console.output.endsOnFailure = false
    self.context = context
    announcer = Announcer(context.console)
  }

  func run() async throws -> ExitCode {
    if context.arguments[flag: .keep], !context.arguments[flag: .demo] { throw UsageError("--keep needs --demo") }
    let (options, isDemo) = (try FleetOptions(context), context.arguments[flag: .demo])
    for sentence in UnknownSettings.sentences(context.arguments.settings) { announcer.say(sentence) }
    let starting = Task {
      let fleet = try await LocalFleet.start(
        options,
        prepare: { environment in
          if isDemo { try Demonstration.prepare(options.layout) }
          try await prepare(environment, options)
        }, say: { [announcer] in announcer.say($0) })
      do {
        try await waitUntilReady(fleet)
      } catch {
        await fleet.stop(within: .seconds(5))
        throw error
      }
      return fleet
    }
    stop.onStop { starting.cancel() }
    let fleet: LocalFleet
    do {
      fleet = try await starting.value
    } catch _ where starting.isCancelled {
      // An interrupted start gets its own sentence.
      context.note("Stopped before the fleet was ready.")
      return .failed
    } catch let error as SystemError {
      throw CommandFailure(
        .failed, "\(error)", hint: "You need write permission for --data-dir, and free space on its disk.")
    }
    return try await serve(fleet)
  }

  private func serve(_ fleet: LocalFleet) async throws -> ExitCode {
    ProgramEnd.before { fleet.layout.removeEnvironmentFile() }
    let code: ExitCode
    do {
      code = try await withDashboard(fleet) { address in
        try announce(fleet, dashboard: address)
        guard context.arguments[flag: .demo] else {
          await stop.wait()
          return .done
        }
        let code = try await playDemo(fleet)
        if context.arguments[flag: .keep] {
          context.note("The fleet keeps running. Stop it with Ctrl-C.")
          await stop.wait()
        }
        return code
      }
    } catch {
      await drain(fleet)
      throw error
    }
    await drain(fleet)
    return code
  }

  private func withDashboard(
    _ fleet: LocalFleet, _ body: @Sendable (String) async throws -> ExitCode
  ) async throws -> ExitCode {
    let chosen = context.arguments.given(.dashboardPort).flatMap { Int($0) }
    let (kafka, topics) = (try kafka(fleet), fleet.environment.topics)
    let client = try ReelhaulClient(Fleet.patient(kafka), topicPrefix: topics.prefix, source: "/reelhaul/up")
    let telemetry = try FleetSettings.telemetry(context.arguments.settings).map {
      OTLPExporter($0, service: "reelhaul-serve", log: Logger(level: .warning))
    }
    let outcome: Result<ExitCode, any Error>
    do {
      outcome = .success(
        try await PostgresPool.with(fleet.environment.postgres()) { pool in
          try await ControlServer.serving(
            PostgresStore(pool: pool), client, kafka, topics, ports: chosen.map { [$0] } ?? [ControlServer.port, 0],
            telemetry: telemetry,
            onOutage: { [announcer] error in
              announcer.say(error.map { "Operations wait for PostgreSQL or Kafka: \($0)" } ?? "Operations go on.")
            }, body)
        })
    } catch {
      outcome = .failure(error)
    }
    await client.close()
    return try outcome.get()
  }

  private func drain(_ fleet: LocalFleet) async {
    let commands = fleet.keepsCommands ? nil : commands(of: fleet)
    if let commands { await waitUntilApplied(commands) }
    context.note("Draining: workers record their progress and hand back their tasks.")
    var lost: Int64 = 0
    await fleet.stop(within: .seconds((context.arguments.integer(.drain) ?? 25) + 5)) {
      lost = await (try? commands?.position())?.unread ?? 0
    }
    let number = lost == 1 ? "1 command" : "\(lost) commands"
    let loss = lost == 0 ? "." : "; send again \(number) that no worker had applied."
    context.note("Stopped. 'reelhaul up' on \(fleet.layout.root) continues from here\(loss)")
  }

  private func commands(of fleet: LocalFleet) -> GroupObserver? {
    let topics = fleet.environment.topics
    guard let kafka = try? KafkaConfiguration(bootstrap: fleet.environment["REELHAUL_KAFKA"] ?? "") else { return nil }
    return try? GroupObserver(kafka, group: topics.group, topic: topics.commands)
  }

  /// Waits while workers apply the commands sent so far, which the broker forgets when it ends.
  private func waitUntilApplied(_ commands: GroupObserver) async {
    guard let first = try? await commands.position(), first.unread > 0 else { return }
    context.note("Waiting for workers to apply the sent commands, which the broker forgets when it ends.")
    var last = first
    var deadline = BootInstant.now + Self.applying
    while last.committed < first.committed + first.unread, BootInstant.now < deadline {
      try? await Task.sleep(for: .milliseconds(50))
      guard let next = try? await commands.position() else { return }
      if next.committed != last.committed { deadline = .now + Self.applying }
      last = next
    }
  }

  private func kafka(_ fleet: LocalFleet) throws -> KafkaConfiguration {
    guard let kafka = try FleetSettings.kafka(context.arguments.settings.ofWorkers.merging(fleet.environment) { $1 })
    else {
      throw CommandFailure(.unreachable, "the fleet has no Kafka")
    }
    return kafka
  }

  private func playDemo(_ fleet: LocalFleet) async throws -> ExitCode {
    let demonstration = Demonstration(
      fleet, kafka: try kafka(fleet), console: context.console, stage: FleetStage(context.console, announcer),
      keepsFilms: context.arguments[flag: .keep])
    let playing = Task { try await demonstration.play() }
    stop.onStop { playing.cancel() }
    do {
      return try await playing.value ? .done : .failed
    } catch is CancellationError {
      return .failed
    }
  }

  /// Prepares the workers' settings, schema, storage and topics, before the first worker starts.
  private func prepare(_ environment: [String: String], _ options: FleetOptions) async throws {
    let workers = context.environment.merging(environment) { $1 }
    if let sentence = UnknownSettings.unfollowed(context.arguments.settings, workers) { announcer.say(sentence) }
    try checkSettings(workers)
    let storage = try StorageMigration(Storage.roots(parsing: environment["REELHAUL_STORAGE"] ?? ""), new: [])
    let topics = environment.topics
    _ = try await PostgresPool.with(environment.postgres()) { pool in
      try await SchemaMigration(pool).run(topicPrefix: topics.prefix)
      try await mark(storage, in: pool)
      if case .existing = options.broker { return }
      if options.postgres != nil { try await waitForOthers(PostgresStore(pool: pool)) }
    }
    let kafka = try FleetSettings.kafka(workers)
    guard let kafka else { return }
    try await TopicMigration(kafka, topics).run()
  }

  /// Without its disk, the fleet starts, so that `migrate` can say that it is a new one.
  private func mark(_ storage: StorageMigration, in pool: PostgresPool) async throws {
    let former = try await storage.former(in: pool)
    for one in former {
      announcer.say(
        """
        \(storage.complaint(one)) No worker uses it. Mount it; or, if this is to be a new volume: \
        'reelhaul migrate \(OptionSpec.newVolume.spelling) \(one.name)'.
        """)
    }
    if former.isEmpty { _ = try storage.run(former: [], isDry: false) }
  }

  /// Workers of another fleet on this database read another broker: each fleet would take commands and events of the
  /// other. Those that have ended keep their leases for a moment, and do not renew them.
  private func waitForOthers(_ store: PostgresStore) async throws {
    var leases: [UniqueID: Timestamp] = [:]
    while case let others = try await store.workers().filter(\.isLive), !others.isEmpty {
      if leases.isEmpty { announcer.say("Waiting until the leases of workers that use this database are over…") }
      for worker in others {
        guard leases.updateValue(worker.leaseUntil, forKey: worker.id) ?? worker.leaseUntil == worker.leaseUntil else {
          throw CommandFailure(
            .failed, "worker \(worker.pid) on \(worker.host) uses this database with another broker",
            hint: "Stop it, or use its broker: --broker HOST:PORT.")
        }
      }
      try await Task.sleep(for: .milliseconds(250))
    }
  }

  /// Reports mistakes in the workers' settings here, because no worker would start with them.
  private func checkSettings(_ environment: [String: String]) throws {
    let settings = try SettingsLoader.load([], environment: environment)
    let invocation = try CommandParser(Program.spec, settings: settings).parse([Subcommand.worker.spec.name])
    if case .run(let arguments) = invocation { _ = try WorkerConfiguration(arguments) }
  }

  /// Waits until every worker has its lease and its share of the commands.
  private func waitUntilReady(_ fleet: LocalFleet) async throws {
    _ = try await PostgresPool.with(fleet.environment.postgres()) { pool in
      let store = PostgresStore(pool: pool)
      let deadline = BootInstant.now + Self.readiness
      while true {
        let live = Set(try await store.workers().filter(\.isLive).map(\.pid))
        let waiting = fleet.workers.filter { worker in worker.pid.map { !live.contains($0) } ?? true }
        guard let first = waiting.first else { break }
        guard BootInstant.now < deadline else {
          throw CommandFailure(.failed, "\(first.name) does not get ready", hint: "Its log: \(first.logFile)")
        }
        try await Task.sleep(for: .milliseconds(50))
      }
    }
    if fleet.dealsCommands, !fleet.workers.isEmpty { try await waitUntilDealt(fleet) }
  }

  /// Waits until all workers have seen each other's leases, and all partitions are read.
  private func waitUntilDealt(_ fleet: LocalFleet) async throws {
    let deadline = BootInstant.now + Self.readiness
    // Each looks at them with its own renewals.
    try await Task.sleep(for: WorkerSettings().renewalInterval * 2)
    guard let commands = commands(of: fleet) else { return }
    // A request may fail while the broker is busy with a new group.
    while await (try? commands.hasEveryPartition()) != true {
      guard BootInstant.now < deadline else {
        // If it is the broker that fails, its error is the reason.
        if try await commands.hasEveryPartition() { return }
        throw CommandFailure(
          .failed, "the workers do not read all commands", hint: "Their logs are in \(fleet.layout.logs).")
      }
      try await Task.sleep(for: .milliseconds(50))
    }
  }

  private func announce(_ fleet: LocalFleet, dashboard: String) throws {
    let environment = fleet.environment.merging(["REELHAUL_API": dashboard]) { $1 }
    let lines = environment.sorted { $0.key < $1.key }.map { SettingsFile.line($0.key, $0.value) }
    // The file contains the database's password.
    try TextFile.write(lines.joined(), to: fleet.layout.environmentFile, mode: 0o600)
    let workers = fleet.workers.count
    context.note("The dashboard is at \(dashboard)")
    context.note(
      "Ready: \(workers) \(workers == 1 ? "worker" : "workers"). Their logs are in \(fleet.layout.logs). In another terminal:"
    )
    context.output.line("source \(SettingsFile.word(fleet.layout.environmentFile))")
  }
}

/// The services that an environment of workers names.
extension [String: String] {
  fileprivate var topics: TopicPlan { TopicPlan(prefix: self["REELHAUL_TOPIC_PREFIX"] ?? "") }

  fileprivate func postgres() throws -> PostgresConfiguration {
    try PostgresConfiguration(url: self["REELHAUL_POSTGRES"] ?? "")
  }
}
