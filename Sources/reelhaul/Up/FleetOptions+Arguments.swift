import CommandLineKit
import Demo
import Glibc
import LocalFleet
import ReelhaulKafka
import ReelhaulSystem
import WorkerOptions

extension Settings {
  /// The environment that gives workers the settings of the environment and of the file.
  var ofWorkers: [String: String] {
    let names = Subcommand.worker.spec.options.compactMap(\.environment) + names(withPrefix: "REELHAUL_KAFKA_")
    return Dictionary(names.compactMap { name in self[name].map { (name, $0) } }) { $1 }
  }
}

extension FleetOptions {
  init(_ context: Context) throws {
    let arguments = context.arguments
    let demo = arguments[flag: .demo]
    let layout = FleetLayout(root: try Self.absolute(arguments[.dataDirectory] ?? "reelhaul-data"))
    guard !layout.root.contains(",") else {
      throw UsageError(
        "the path of --data-dir must not contain a comma, which separates directories in settings: \(layout.root)")
    }
    let telemetry = arguments.settings.values(withPrefix: "OTEL_").map { ("OTEL_" + $0.key, $0.value) }
    let settings = [
      "REELHAUL_CREDENTIALS": demo ? Demonstration.credentials(layout) : nil,
      // For the demo a short lease, because it kills a worker, and few tasks per worker, to spread the films over all
      // of them.
      "REELHAUL_LEASE_SECONDS": arguments.given(.lease) ?? (demo ? "5" : arguments[.lease]),
      "REELHAUL_CONCURRENCY": arguments.given(.concurrency) ?? (demo ? "5" : arguments[.concurrency]),
      "REELHAUL_DRAIN_SECONDS": arguments[.drain],
      "REELHAUL_LOG_LEVEL": arguments[.logLevel],
      // All workers are on this machine, where only one could have the port.
      "REELHAUL_METRICS_PORT": "0",
    ].compactMapValues { $0 }.merging(telemetry) { $1 }
    guard arguments[.fleetTopicPrefix] != "" else { throw UsageError("--topic-prefix must not be empty") }
    let broker = try Self.broker(arguments[.broker] ?? "embedded", context.environment)
    try self.init(
      layout: layout,
      workers: Int(arguments.integer(.workerCount) ?? 3),
      broker: broker,
      postgres: arguments[.runningPostgres],
      topicPrefix: FleetSettings.topics(arguments, .fleetTopicPrefix).prefix,
      executable: Self.ownExecutable(), workerSettings: settings)
    givenSettings = arguments.settings.ofWorkers
    if case .existing = broker { return }
    // These properties are for another broker: the fleet's own broker speaks plaintext.
    unset = arguments.settings.names(withPrefix: "REELHAUL_KAFKA_")
  }

  private static func broker(_ text: String, _ environment: [String: String]) throws -> Broker {
    switch text {
    case "embedded": return .embedded
    case "apache-kafka":
      guard let home = environment["KAFKA_HOME"], !home.isEmpty else {
        throw UsageError(
          "--broker apache-kafka needs KAFKA_HOME", hint: "Set it to an unpacked distribution of Apache Kafka.")
      }
      guard access("\(home)/bin/kafka-server-start.sh", X_OK) == 0 else {
        throw UsageError(
          "KAFKA_HOME is \(home), which has no bin/kafka-server-start.sh",
          hint: "Set it to an unpacked distribution of Apache Kafka.")
      }
      return .apacheKafka(home: home)
    case let text where (try? KafkaConfiguration(bootstrap: text)) != nil: return .existing(text)
    default:
      throw UsageError("--broker must be embedded, apache-kafka or HOST:PORT, not \"\(text)\"")
    }
  }

  private static func absolute(_ path: String) throws -> String {
    guard !path.hasPrefix("/") else { return path }
    guard let directory = getcwd(nil, 0) else { throw SystemError.last("getcwd") }
    defer { free(directory) }
    return String(cString: directory) + "/" + path
  }

  /// The path of the running program.
  static func ownExecutable() throws -> String {
    guard let path = realpath("/proc/self/exe", nil) else { throw SystemError.last("find this program") }
    defer { free(path) }
    return String(cString: path)
  }
}
