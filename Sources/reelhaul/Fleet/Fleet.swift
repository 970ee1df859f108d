import CommandLineKit
import ReelhaulClient
import ReelhaulKafka
import ReelhaulPostgres
import TaskCore
import TaskStore

/// Connects a command to the fleet's services.
enum Fleet {
  /// How long a command waits for PostgreSQL before it reports that it cannot be reached.
  private static let postgresPatience: Duration = .seconds(5)
  /// The same for Kafka, in milliseconds. The user's own property overrides it.
  private static let kafkaPatience = "5000"

  static func kafka(_ arguments: Arguments) throws -> KafkaConfiguration {
    var environment = ["REELHAUL_KAFKA": arguments[.kafka] ?? ""]
    for (property, value) in arguments.settings.values(withPrefix: "REELHAUL_KAFKA_") {
      environment["REELHAUL_KAFKA_\(property)"] = value
    }
    guard let configuration = try kafka(environment) else {
      throw unconfigured("no Kafka is configured", .kafka, arguments)
    }
    return configuration
  }

  /// Nil if `environment` names no Kafka. As with all settings, an empty value counts as not set.
  static func kafka(_ environment: [String: String]) throws(KafkaError) -> KafkaConfiguration? {
    try KafkaConfiguration.fromEnvironment(environment.filter { !$0.value.isEmpty })
  }

  static func postgres(_ arguments: Arguments) throws -> PostgresConfiguration {
    guard let url = arguments[.postgres] else {
      throw unconfigured("no PostgreSQL is configured", .postgres, arguments)
    }
    var configuration = try PostgresConfiguration(url: url)
    configuration.acquireTimeout = min(configuration.acquireTimeout, postgresPatience)
    return configuration
  }

  /// Also names misspelt variables, because one of them may be the missing setting.
  static func unconfigured(_ message: String, _ option: OptionSpec, _ arguments: Arguments) -> UsageError {
    let hint = """
      Give \(option.spelling) \(option.valueName), set \(option.environment ?? ""), or source the reelhaul.env that \
      'reelhaul up' wrote.
      """
    return UsageError(message, hint: (UnknownSettings.sentences(arguments.settings) + [hint]).joined(separator: "\n"))
  }

  static func topics(_ arguments: Arguments, _ prefix: OptionSpec = .topicPrefix) throws(UsageError) -> TopicPlan {
    do {
      return try TopicPlan(checking: arguments[prefix] ?? TopicPlan().prefix)
    } catch {
      throw UsageError("\(prefix.setting): \(error.message)")
    }
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
    var kafka = try kafka(arguments)
    if kafka.properties["message.timeout.ms"] == nil {
      let properties = kafka.properties.merging(["message.timeout.ms": kafkaPatience]) { $1 }
      kafka = try KafkaConfiguration(bootstrap: kafka.bootstrap, properties: properties)
    }
    return try ReelhaulClient(kafka, topicPrefix: topics(arguments).prefix, source: "/reelhaul/cli")
  }

  /// Returns once Kafka has the commands.
  static func send(_ commands: [Command], _ context: Context) async throws {
    let client = try client(context.arguments)
    do {
      try await client.send(commands)
    } catch {
      await client.close(within: .zero)
      throw await missingTopic(context.arguments) ?? error
    }
    await client.close()
  }

  /// A missing topic looks like a missing broker: both only cause waiting. So this asks a broker.
  private static func missingTopic(_ arguments: Arguments) async -> CommandFailure? {
    guard let topic = try? topics(arguments).commands, let kafka = try? kafka(arguments),
      let admin = try? KafkaAdmin(kafka, timeout: .seconds(2))
    else { return nil }
    let present = try? await admin.metadata().topics
    await admin.close()
    guard let present, present[topic] == nil else { return nil }
    return CommandFailure(
      .unreachable, "Kafka has no topic \(topic)",
      hint: "Create it with 'reelhaul migrate', or correct \(OptionSpec.topicPrefix.setting).")
  }

  static func withStore<Result: Sendable>(
    _ context: Context, _ body: @Sendable (any TaskStore) async throws -> Result
  ) async throws -> Result {
    try await withPool(context.arguments) { try await body(PostgresStore(pool: $0)) }
  }

  static func withPool<Result: Sendable>(
    _ arguments: Arguments, _ body: @Sendable (PostgresPool) async throws -> Result
  ) async throws -> Result {
    try await PostgresPool.with(try postgres(arguments), body)
  }
}
