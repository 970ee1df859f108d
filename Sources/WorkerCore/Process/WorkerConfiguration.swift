import OTLP
import ReelhaulKafka
import TransferEngine

/// The services and files of a worker process. ``WorkerSettings`` has the other settings.
package struct WorkerConfiguration: Sendable {
  package var settings: WorkerSettings
  package var kafka: KafkaConfiguration
  /// A PostgreSQL URL.
  package var postgres: String
  /// Whether commands are dealt out by leases instead of the group's protocol. Only for the development broker.
  package var dealsCommands = false
  /// The names of storages and their directories.
  package var storage: [String: String]
  /// Creates missing directories of `storage` and marks them as volumes. Only for directories that are not mounts.
  package var initialisesStorage = false
  /// Networks that transfers may reach in addition to the public internet.
  package var allowedNetworks: [CIDR]
  /// Bytes per second for all transfers of the worker together; nil for no limit.
  package var rate: Int64?
  /// What stays free of the volume of each storage.
  package var minFree = ReservePolicy().floor
  /// Connections to one host, of all transfers together.
  package var hostConnections = StorageRoots.Settings.standardHostConnections
  /// The IP address and the port at which the metrics are served; nil if they are not.
  package var metrics: (address: String, port: Int)?
  /// Where spans and metrics are sent; nil if they are not.
  package var telemetry: OTLPSettings?
  /// A PEM file of certificate authorities that replaces the system's.
  package var caFile: String?
  /// The file with the credentials that tasks may name.
  package var credentials: String?
  /// Signs web hooks to hosts for which the credentials have no secret.
  package var hookSecret: String?
  /// Whether tasks that name no credential use the keys of AWS's own files and environment.
  package var awsCredentials = false

  package init(
    kafka: KafkaConfiguration, postgres: String, storage: [String: String], allowedNetworks: [CIDR] = [],
    settings: WorkerSettings = WorkerSettings()
  ) {
    self.settings = settings
    self.kafka = kafka
    self.postgres = postgres
    self.storage = storage
    self.allowedNetworks = allowedNetworks
  }
}
