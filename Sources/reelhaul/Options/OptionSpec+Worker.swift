import CommandLineKit
import ReelhaulTelemetry
import TransferEngine
import WorkerCore

/// Options of a worker.
extension OptionSpec {
  private static let standard = WorkerSettings()

  static let storage = OptionSpec(
    "storage", .text, valueName: "NAME=/PATH,…", environment: "REELHAUL_STORAGE", group: "Worker",
    help: "The worker's storage roots: storage://NAME/ is below /PATH")
  static let allowNetworks = OptionSpec(
    "allow-networks", .text, valueName: "CIDR,…", environment: "REELHAUL_ALLOW_NETWORKS", group: "Worker",
    help: "Networks that transfers may reach in addition to the public internet")
  static let lease = OptionSpec(
    "lease-seconds", .integer(3...3600), valueName: "SECONDS", default: "\(standard.leaseSeconds)",
    environment: "REELHAUL_LEASE_SECONDS", group: "Worker",
    help: "Seconds until the tasks of a dead worker are taken over")
  static let concurrency = OptionSpec(
    "concurrency", .integer(1...10_000), default: "\(standard.concurrency)", environment: "REELHAUL_CONCURRENCY",
    group: "Worker", help: "Tasks that run at once in one worker")
  static let drain = OptionSpec(
    "drain-seconds", .integer(1...3600), valueName: "SECONDS", default: "\(standard.drainLimit.components.seconds)",
    environment: "REELHAUL_DRAIN_SECONDS",
    group: "Worker", help: "Seconds that a stopping worker has to hand back its tasks")
  static let workerRate = OptionSpec(
    "rate", .bytes, environment: "REELHAUL_RATE", group: "Worker",
    help: "The limit in bytes a second for all transfers of the worker together, shared equally")
  static let caFile = OptionSpec(
    "ca-file", .file, environment: "REELHAUL_CA_FILE", group: "Worker",
    help: "A PEM file of the certificate authorities to trust for https, instead of the system's")
  static let credentials = OptionSpec(
    "credentials", .file, environment: "REELHAUL_CREDENTIALS", group: "Worker",
    help: "A JSON file of the credentials that tasks may name, with the hosts of each")
  static let initStorage = OptionSpec(
    "init-storage", .flag, environment: "REELHAUL_INIT_STORAGE", group: "Worker",
    help: "Create missing directories of storage roots; not for mounts")
  static let labels = OptionSpec(
    "labels", .text, valueName: "K=V,…", environment: "REELHAUL_LABELS", group: "Worker",
    help: "Labels that 'reelhaul workers --json' shows")
  static let logLevel = OptionSpec(
    "log-level", .choice(LogLevel.allCases.map(\.name)), default: LogLevel.info.name,
    environment: "REELHAUL_LOG_LEVEL", group: "Worker", help: "How much is logged to standard error")

  static let working: [OptionSpec] = [
    .storage, .initStorage, .allowNetworks, .caFile, .credentials, .workerRate, .lease, .concurrency, .drain, .labels,
    .logLevel,
  ]
}

extension Arguments {
  /// The directories of the storage roots, by name.
  func storageRoots() throws(UsageError) -> [String: String] {
    do {
      return try Storage.roots(parsing: self[.storage] ?? "")
    } catch {
      throw UsageError("\(OptionSpec.storage.spelling) must be \(OptionSpec.storage.valueName): \(error)")
    }
  }
}
