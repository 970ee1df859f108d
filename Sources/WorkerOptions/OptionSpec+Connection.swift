import CommandLineKit
import ReelhaulKafka

/// Options for the fleet's services.
extension OptionSpec {
  package static let config = OptionSpec(
    "config", .file, environment: "REELHAUL_CONFIG", group: "General",
    help: "Read settings from a file of KEY=value lines, such as the reelhaul.env of 'reelhaul up'")
  package static let kafka = OptionSpec(
    "kafka", .text, valueName: "HOST:PORT,…", environment: "REELHAUL_KAFKA", group: "Services",
    help: "Kafka's bootstrap servers; REELHAUL_KAFKA_<PROPERTY> sets any property of librdkafka")
  package static let postgres = OptionSpec(
    "postgres", .text, valueName: "URL", environment: "REELHAUL_POSTGRES", group: "Services",
    help: "PostgreSQL's URL: postgres://USER@HOST:PORT/DATABASE")
  package static let topicPrefix = OptionSpec(
    "topic-prefix", .text, default: TopicPlan().prefix, environment: "REELHAUL_TOPIC_PREFIX", group: "Services",
    help: "The first part of the fleet's topic names")

  package static let producing: [OptionSpec] = [.kafka, .postgres, .topicPrefix]
  package static let reading: [OptionSpec] = [.postgres]
}
