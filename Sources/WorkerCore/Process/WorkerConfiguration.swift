import ReelhaulKafka
import TransferEngine

/// How the parts of a worker process are reached and made; ``WorkerSettings`` holds the rest.
package struct WorkerConfiguration: Sendable {
  package var settings: WorkerSettings
  package var kafka: KafkaConfiguration
  /// A PostgreSQL URL.
  package var postgres: String
  /// Storage names and the directories that are mounted for them.
  package var storage: [String: String]
  /// Makes the directories of `storage` volumes where they are none yet; only where nobody mounts them.
  package var initialisesStorage = false
  /// What transfers may reach besides the public internet.
  package var allowedNetworks: [CIDR]
  /// Bytes per second for all transfers of the worker together; nil: no limit.
  package var rate: Int64?
  /// A PEM file of the authorities that sign servers' certificates, in the place of the system's.
  package var caFile: String?
  /// The file of the credentials that tasks may name.
  package var credentials: String?

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
