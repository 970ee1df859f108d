import ReelhaulKafka

/// The broker and the database of a local fleet, started here or already running.
struct FleetServices: Sendable {
  private enum Broker: Sendable {
    case development(DevelopmentBroker)
    case apache(ProcessSlot<ApacheKafka>)
    case existing
  }

  let bootstrap: String
  let postgresURL: String
  private let broker: Broker
  private let postgres: ProcessSlot<EmbeddedPostgres>?

  /// Starts both services, or neither if one of them cannot be started.
  static func start(
    _ options: FleetOptions, _ say: @escaping @Sendable (String) -> Void
  ) async throws -> FleetServices {
    let postgres = try await startPostgres(options, say)
    do {
      let (broker, bootstrap) = try await startBroker(options, say)
      return FleetServices(
        bootstrap: bootstrap, postgresURL: postgres?.process.url() ?? options.postgres ?? "", broker: broker,
        postgres: postgres)
    } catch {
      await postgres?.stop { await $0.stop() }
      throw error
    }
  }

  private static func startPostgres(
    _ options: FleetOptions, _ say: @escaping @Sendable (String) -> Void
  ) async throws -> ProcessSlot<EmbeddedPostgres>? {
    guard options.postgres == nil else { return nil }
    say("Starting PostgreSQL in \(options.layout.postgres)")
    let directory = options.layout.postgres
    let server = try await EmbeddedPostgres.start(directory: directory, say: say)
    return ProcessSlot(
      server, name: "PostgreSQL", logFile: server.logFile, say: say,
      restart: { try await EmbeddedPostgres.start(directory: directory, port: server.port, say: say) })
  }

  private static func startBroker(
    _ options: FleetOptions, _ say: @escaping @Sendable (String) -> Void
  ) async throws -> (Broker, String) {
    switch options.broker {
    case .embedded:
      let broker = try DevelopmentBroker(topics: TopicPlan(prefix: options.topicPrefix).topics)
      say(
        "Development broker at \(broker.bootstrap): real Kafka protocol, in memory, only for this machine. It drops a "
          + "partition's oldest records beyond 5 MB and forgets everything when this process ends. Tasks are kept in PostgreSQL."
      )
      return (.development(broker), broker.bootstrap)
    case .apacheKafka(let home):
      say("Starting Apache Kafka in \(options.layout.kafka)")
      let directory = options.layout.kafka
      let kafka = try await ApacheKafka(home: home, directory: directory)
      let slot = ProcessSlot(
        kafka, name: "Apache Kafka", logFile: kafka.logFile, say: say,
        restart: { try await ApacheKafka(home: home, directory: directory, ports: kafka.ports) })
      return (.apache(slot), kafka.bootstrap)
    case .existing(let bootstrap):
      return (.existing, bootstrap)
    }
  }

  /// Whether it is the development broker, which forgets its records when it is stopped, and lets a group wait for
  /// seconds at each change.
  var isDevelopment: Bool {
    if case .development = broker { true } else { false }
  }

  func stop() async {
    switch broker {
    case .development(let broker): await broker.close()
    case .apache(let slot): await slot.stop { await $0.stop() }
    case .existing: break
    }
    await postgres?.stop { await $0.stop() }
  }
}
