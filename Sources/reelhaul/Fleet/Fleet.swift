import CommandLineKit
import ReelhaulClient
import ReelhaulKafka
import ReelhaulPostgres
import TaskCore
import TaskStore
import WorkerOptions

/// Connects a command to the fleet's services.
enum Fleet {
  /// How long a command waits for PostgreSQL before it reports that it cannot be reached.
  private static let postgresPatience: Duration = .seconds(5)
  /// The same for Kafka, in milliseconds. The user's own property overrides it.
  private static let kafkaPatience = "5000"

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

  /// Throws if Kafka cannot be reached. For commands that otherwise wait as long as a broker's fail-over takes.
  static func reachKafka(_ arguments: Arguments) async throws {
    let admin = try KafkaAdmin(kafka(arguments), timeout: .seconds(5))
    let answer: Swift.Result<ClusterMetadata, any Error>
    do {
      answer = .success(try await admin.metadata())
    } catch {
      answer = .failure(error)
    }
    await admin.close()
    _ = try answer.get()
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
    guard kafka.properties["message.timeout.ms"] == nil else { return kafka }
    let properties = kafka.properties.merging(["message.timeout.ms": milliseconds]) { $1 }
    return try KafkaConfiguration(bootstrap: kafka.bootstrap, properties: properties)
  }

  /// Returns once Kafka has the commands.
  static func send(_ commands: [Command], _ context: Context) async throws {
    let client = try client(context.arguments)
    do throws(ReelhaulClientError) {
      try await client.send(commands)
    } catch {
      await client.close(within: .zero)
      throw error.isRetryable ? await missingTopic(context.arguments) ?? error : error
    }
    await client.close()
  }

  /// A missing topic looks like a missing broker: both only cause waiting. So this asks a broker.
  private static func missingTopic(_ arguments: Arguments) async -> CommandFailure? {
    guard let topic = try? FleetSettings.topics(arguments).commands, let kafka = try? kafka(arguments),
      let admin = try? KafkaAdmin(kafka, timeout: .seconds(2))
    else { return nil }
    let present = try? await admin.metadata().topics
    await admin.close()
    guard let present, present[topic] == nil else { return nil }
    return CommandFailure(
      .unreachable, "Kafka has no topic \(topic), or this user may not see it",
      hint: "Create it with 'reelhaul migrate', grant a right to it, or correct \(OptionSpec.topicPrefix.setting).")
  }

  static func withStore<Result: Sendable>(
    _ context: Context, _ body: @Sendable (any ControlStore) async throws -> Result
  ) async throws -> Result {
    try await withPool(context.arguments) { try await body(PostgresStore(pool: $0)) }
  }

  static func withPool<Result: Sendable>(
    _ arguments: Arguments, _ body: @Sendable (PostgresPool) async throws -> Result
  ) async throws -> Result {
    try await PostgresPool.with(try postgres(arguments), body)
  }
}
