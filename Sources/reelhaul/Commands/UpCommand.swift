import CommandLineKit
import LocalFleet
import ReelhaulKafka
import WorkerOptions

extension Subcommand {
  static let up = Subcommand(
    CommandSpec(
      name: "up", summary: "Run a whole fleet on this machine",
      discussion: """
        Starts a private PostgreSQL, a broker and workers, and stays in the foreground. Once the fleet is ready it \
        writes DIR/reelhaul.env, which tells all other commands where it is, and serves the dashboard. SIGINT, SIGTERM and SIGHUP drain it, a \
        second SIGINT or SIGTERM ends it at once. Started again with the same directory, it continues with its tasks. Nothing \
        is installed, and no Docker is needed.
        """,
      options: OptionSpec.fleet + [.lease, .concurrency, .drain, .logLevel],
      examples: [
        Example("reelhaul up", "Three workers, all in ./reelhaul-data"),
        Example("source reelhaul-data/reelhaul.env", "In another terminal, once it is ready"),
        Example("reelhaul up --demo", "See a worker killed during transfers without losing anything"),
        Example("KAFKA_HOME=/opt/kafka reelhaul up --broker apache-kafka", "With a real Apache Kafka"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable))
  ) { context in
    do {
      return try await UpRun(context).run()
    } catch {
      throw CommandFailure(error, kafka: .broker, postgres: .runningPostgres, topicPrefix: .fleetTopicPrefix)
    }
  }
}

extension OptionSpec {
  private static let group = "Fleet"

  static let workerCount = OptionSpec(
    "workers", short: "n", .integer(0...64), default: "3", group: group, help: "Worker processes")
  static let dataDirectory = OptionSpec(
    "data-dir", .directory, default: "reelhaul-data", group: group, help: "The directory for all data")
  static let broker = OptionSpec(
    "broker", .words(["embedded", "apache-kafka"]), valueName: "embedded|apache-kafka|HOST:PORT,…", default: "embedded",
    group: group,
    help: "The development broker, an Apache Kafka from KAFKA_HOME, or a running Kafka")
  // Not from the environment, because a local fleet must not use the database of another fleet by accident.
  static let runningPostgres = OptionSpec(
    "postgres", .text, valueName: "URL", group: group, help: "A running PostgreSQL, instead of a private one")
  static let fleetTopicPrefix = OptionSpec(
    "topic-prefix", .text, default: TopicPlan().prefix, group: group, help: "The first part of all topic names")
  static let dashboardPort = OptionSpec(
    "port", .integer(0...65535), group: group,
    help: "The dashboard's port on 127.0.0.1; otherwise \(ControlServer.port), or a free one if that is taken")
  static let demo = OptionSpec(
    "demo", .flag, group: group,
    help: """
      Download a dozen films, upload one to S3 and copy another there, while workers are killed. \
      \(OptionSpec.lease.spelling) and \(OptionSpec.concurrency.spelling) are then 5 by default
      """)
  static let keep = OptionSpec("keep", .flag, group: group, help: "Leave the fleet running after the demo")

  fileprivate static let fleet: [OptionSpec] = [
    .workerCount, .dataDirectory, .broker, .runningPostgres, .fleetTopicPrefix, .dashboardPort, .demo, .keep,
  ]
}
