import CommandLineKit
import ReelhaulTelemetry
import TransferEngine
import WorkerCore

/// Options of a worker.
extension OptionSpec {
  private static let standard = WorkerSettings()

  package static let storage = OptionSpec(
    "storage", .text, valueName: "NAME=/PATH,…", environment: "REELHAUL_STORAGE", group: "Worker",
    help: "The storage roots this worker has: storage://NAME/ is below /PATH")
  package static let hookSecret = OptionSpec(
    "hook-secret", .text, valueName: "SECRET", environment: "REELHAUL_HOOK_SECRET", group: "Worker",
    help: "Signs web hooks to hosts for which the credentials have no hookSecret; others see a process's arguments")
  package static let allowNetworks = OptionSpec(
    "allow-networks", .text, valueName: "CIDR,…", environment: "REELHAUL_ALLOW_NETWORKS", group: "Worker",
    help: "Networks that transfers may reach besides the public internet")
  package static let lease = OptionSpec(
    "lease-seconds", .integer(3...3600), valueName: "SECONDS", default: "\(standard.leaseSeconds)",
    environment: "REELHAUL_LEASE_SECONDS", group: "Worker",
    help: "How long after a worker's death its tasks are taken over")
  package static let concurrency = OptionSpec(
    "concurrency", .integer(1...10_000), default: "\(standard.concurrency)", environment: "REELHAUL_CONCURRENCY",
    group: "Worker", help: "Tasks that run at once in one worker")
  package static let drain = OptionSpec(
    "drain-seconds", .integer(1...3600), valueName: "SECONDS", default: "\(standard.drainLimit.components.seconds)",
    environment: "REELHAUL_DRAIN_SECONDS",
    group: "Worker", help: "How long a worker may take to hand back its tasks when it is stopped")
  package static let workerRate = OptionSpec(
    "rate", .bytes, environment: "REELHAUL_RATE", group: "Worker",
    help: "At most so many bytes a second for all transfers of the worker together, which share it as equals")
  package static let hostConnections = OptionSpec(
    "host-connections", .integer(1...1000), default: "\(StorageRoots.Settings.standardHostConnections)",
    environment: "REELHAUL_HOST_CONNECTIONS", group: "Worker",
    help: "Requests that one worker has running at one host and port, for all its tasks together")
  package static let minFree = OptionSpec(
    "min-free", .text, valueName: "SIZE|N%", default: "1%", environment: "REELHAUL_MIN_FREE", group: "Worker",
    help: "What tasks leave free of the volume of each storage")
  package static let caFile = OptionSpec(
    "ca-file", .file, environment: "REELHAUL_CA_FILE", group: "Worker",
    help: "A PEM file of certificate authorities that replaces the system's")
  package static let credentials = OptionSpec(
    "credentials", .file, environment: "REELHAUL_CREDENTIALS", group: "Worker",
    help: "A JSON file with the credentials that tasks may name, and the hosts of each")
  package static let awsCredentials = OptionSpec(
    "aws-credentials", .flag, environment: "REELHAUL_AWS_CREDENTIALS", group: "Worker",
    help: "Tasks that name no credential use the keys of AWS's environment variables and files")
  package static let initStorage = OptionSpec(
    "init-storage", .flag, environment: "REELHAUL_INIT_STORAGE", group: "Worker",
    help: "Create missing storage roots; do not use it for mounted ones")
  package static let labels = OptionSpec(
    "labels", .text, valueName: "K=V,…", environment: "REELHAUL_LABELS", group: "Worker",
    help: "Labels of the worker in 'reelhaul workers --json'")
  package static let dealCommands = OptionSpec(
    "deal-commands", .flag, environment: "REELHAUL_DEAL_COMMANDS", group: "Worker",
    help: "Share commands by leases, not by Kafka's group protocol; set by 'up' for its development broker only")
  package static let metricsPort = OptionSpec(
    "metrics-port", .integer(0...65535), valueName: "PORT", default: "0", environment: "REELHAUL_METRICS_PORT",
    group: "Worker", help: "Serve /metrics for Prometheus and /healthz at this port; 0 serves nothing")
  package static let metricsAddress = OptionSpec(
    "metrics-address", .text, valueName: "IP", default: "127.0.0.1", environment: "REELHAUL_METRICS_ADDRESS",
    group: "Worker", help: "The address of this machine that serves them; 0.0.0.0 in a container")
  package static let logLevel = OptionSpec(
    "log-level", .choice(LogLevel.allCases.map(\.name)), default: LogLevel.info.name,
    environment: "REELHAUL_LOG_LEVEL", group: "Worker", help: "How much is logged to standard error")

  package static let working: [OptionSpec] = [
    .storage, .initStorage, .allowNetworks, .caFile, .credentials, .awsCredentials, .hookSecret, .workerRate,
    .hostConnections, .minFree,
    .lease, .concurrency, .drain, .labels, .metricsPort, .metricsAddress, .dealCommands,
    .logLevel,
  ]
}

extension Arguments {
  /// The directories of the storage roots, by name.
  package func storageRoots() throws(UsageError) -> [String: String] {
    do {
      return try Storage.roots(parsing: self[.storage] ?? "")
    } catch {
      throw UsageError("\(OptionSpec.storage.spelling) must be \(OptionSpec.storage.valueName): \(error)")
    }
  }
}
