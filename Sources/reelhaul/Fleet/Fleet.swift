import CommandLineKit
import ReelhaulClient
import ReelhaulKafka
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import WorkerOptions

/// Connects a command to the fleet's services.
enum Fleet {
  /// How long a command waits for PostgreSQL before it reports that it cannot be reached.
  private static let postgresPatience: Duration = .seconds(5)
  /// The same for Kafka, in milliseconds. The user's own property overrides it.
  private static let kafkaPatience = "5000"
  /// How long a command is sent again while the cluster answers: some seconds longer than the 9 s after which a cluster
  /// replaces a broker that hangs.
  private static let replacement: Duration = .seconds(12)

  static func kafka(_ arguments: Arguments) throws -> KafkaConfiguration {
    try FleetSettings.kafka(arguments, hints: UnknownSettings.sentences(arguments.settings))
  }

  static func postgres(_ arguments: Arguments) throws -> PostgresConfiguration {
    var configuration = try FleetSettings.postgres(arguments, hints: UnknownSettings.sentences(arguments.settings))
    configuration.acquireTimeout = min(configuration.acquireTimeout, postgresPatience)
    return configuration
  }

  static func unconfigured(_ message: String, _ option: OptionSpec, _ arguments: Arguments) -> UsageError {
    FleetSettings.unconfigured(message, option, hints: UnknownSettings.sentences(arguments.settings))
  }

  /// Throws if Kafka cannot be reached, or has no topic for commands. For commands that otherwise wait as long as a
  /// broker's fail-over takes.
  static func reachKafka(_ arguments: Arguments) async throws {
    try checkTopic(
      in: try await KafkaAdmin.with(kafka(arguments), timeout: .seconds(5)) { try await $0.metadata() }, arguments)
  }

  /// `kafkaPatience`: how long a command waits for its acknowledgement, in milliseconds.
  static func client(_ arguments: Arguments, kafkaPatience: String = Fleet.kafkaPatience) throws -> ReelhaulClient {
    try ReelhaulClient(
      patient(kafka(arguments), for: kafkaPatience), topicPrefix: FleetSettings.topics(arguments).prefix,
      source: "/reelhaul/cli")
  }

  /// For a producer that waits so many milliseconds for its acknowledgements, unless the user says otherwise.
  static func patient(
    _ kafka: KafkaConfiguration, for milliseconds: String = kafkaPatience
  ) throws -> KafkaConfiguration {
    // A broker that hangs accepts connections all the same. Another one is to be tried before the patience ends.
    var properties = ["socket.connection.setup.timeout.ms": "3000"]
    // Two names of one property; which of them librdkafka would take depends on their order.
    if kafka.properties["delivery.timeout.ms"] == nil { properties["message.timeout.ms"] = milliseconds }
    return try KafkaConfiguration(
      bootstrap: kafka.bootstrap, properties: properties.merging(kafka.properties) { $1 })
  }

  /// Returns once Kafka has the commands. If they are not acknowledged although the cluster answers, a broker may hang:
  /// then they are sent again, as a command that comes twice takes effect once.
  static func send(_ commands: [Command], _ context: Context) async throws {
    let deadline = BootInstant.now + replacement
    while true {
      // A new client asks anew which brokers lead.
      let client = try client(context.arguments)
      do throws(ReelhaulClientError) {
        try await client.send(commands)
        return await client.close()
      } catch {
        await client.close(within: .zero)
        guard error.isRetryable, try await hasTopic(context.arguments), !deadline.hasPassed else { throw error }
      }
    }
  }

  /// Whether the cluster answers. A missing topic looks like a missing broker, because both only cause waiting: this
  /// throws if the cluster has no topic for commands.
  private static func hasTopic(_ arguments: Arguments) async throws -> Bool {
    let cluster = try await KafkaAdmin.with(kafka(arguments), timeout: .seconds(2)) { try? await $0.metadata() }
    guard let cluster else { return false }
    try checkTopic(in: cluster, arguments)
    return true
  }

  private static func checkTopic(in cluster: ClusterMetadata, _ arguments: Arguments) throws {
    let topic = try FleetSettings.topics(arguments).commands
    guard cluster.topics[topic] == nil, !cluster.unsure.contains(topic) else { return }
    throw CommandFailure(
      .unreachable, "Kafka has no topic \(topic), or this user may not see it",
      hint: "Create it with 'reelhaul migrate', grant a right to it, or correct \(OptionSpec.topicPrefix.setting).")
  }

  static func withStore<Result: Sendable>(
    _ context: Context, _ body: @Sendable (any ControlStore) async throws -> Result
  ) async throws -> Result {
    try await withPool(context.arguments) { try await body(PostgresStore(pool: $0)) }
  }

  /// For a command that changes the store. An older schema is refused before: the change might succeed, and the command
  /// fail when it reads the result. A newer one serves the version before, too.
  static func withStoreToChange<Result: Sendable>(
    _ context: Context, _ body: @Sendable (any ControlStore) async throws -> Result
  ) async throws -> Result {
    try await withStore(context) { store in
      try await checkBeforeChange(store)
      return try await body(store)
    }
  }

  static func checkBeforeChange(_ store: any SchemaStore) async throws {
    do { try await store.checkSchema() } catch StoreError.otherSchema {}
  }

  static func withPool<Result: Sendable>(
    _ arguments: Arguments, _ body: @Sendable (PostgresPool) async throws -> Result
  ) async throws -> Result {
    try await PostgresPool.with(try postgres(arguments), body)
  }
}
