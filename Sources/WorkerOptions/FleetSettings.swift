import CommandLineKit
import OTLP
import ReelhaulKafka
import ReelhaulPostgres
import TransferEngine

/// Reads from options, environment and settings file where a fleet's services are.
///
/// `hints` are sentences that the message of a missing setting adds. One of them may name a misspelt variable.
package enum FleetSettings {
  package static func kafka(_ arguments: Arguments, hints: [String] = []) throws -> KafkaConfiguration {
    var environment = ["REELHAUL_KAFKA": arguments[.kafka] ?? ""]
    for (property, value) in arguments.settings.values(withPrefix: "REELHAUL_KAFKA_") {
      environment["REELHAUL_KAFKA_\(property)"] = value
    }
    guard let configuration = try kafka(environment) else {
      throw unconfigured("no Kafka is configured", .kafka, hints: hints)
    }
    return configuration
  }

  /// Nil if `environment` names no Kafka. As with all settings, an empty value counts as not set.
  package static func kafka(_ environment: [String: String]) throws(KafkaError) -> KafkaConfiguration? {
    try KafkaConfiguration.fromEnvironment(environment.filter { !$0.value.isEmpty })
  }

  package static func postgres(_ arguments: Arguments, hints: [String] = []) throws -> PostgresConfiguration {
    guard let url = arguments[.postgres] else {
      throw unconfigured("no PostgreSQL is configured", .postgres, hints: hints)
    }
    return try PostgresConfiguration(url: url)
  }

  /// Where spans and metrics are sent, as OpenTelemetry's variables say; nil if they are not.
  package static func telemetry(_ settings: Settings) throws(UsageError) -> OTLPSettings? {
    let prefix = "OTEL_"
    let variables = settings.values(withPrefix: prefix).map { (prefix + $0.key, $0.value) }
    let telemetry: OTLPSettings?
    do throws(InvalidOTLPSetting) {
      telemetry = try OTLPSettings(Dictionary(variables) { $1 })
    } catch {
      throw UsageError("\(error)")
    }
    for endpoint in [telemetry?.traces, telemetry?.metrics].compactMap(\.self) {
      do {
        if let path = endpoint.caFile { try CertificateFile.check(path) }
      } catch {
        throw UsageError("\(endpoint.caFileVariable): \(error)")
      }
    }
    return telemetry
  }

  package static func unconfigured(_ message: String, _ option: OptionSpec, hints: [String] = []) -> UsageError {
    let hint = """
      Give \(option.spelling) \(option.valueName), set \(option.environment ?? ""), or source the reelhaul.env that \
      'reelhaul up' wrote.
      """
    return UsageError(message, hint: (hints + [hint]).joined(separator: "\n"))
  }

  package static func topics(
    _ arguments: Arguments, _ prefix: OptionSpec = .topicPrefix
  ) throws(UsageError) -> TopicPlan {
    do {
      return try TopicPlan(checking: arguments[prefix] ?? TopicPlan().prefix)
    } catch {
      throw UsageError("\(prefix.setting): \(error.message)")
    }
  }
}
