/// The parts of a local fleet.
package struct FleetOptions: Sendable {
  package enum Broker: Sendable, Hashable {
    /// The development broker inside this process. It forgets everything when the process ends.
    case embedded
    /// A node of Apache Kafka from the distribution at `home`, with its data in the data directory.
    case apacheKafka(home: String)
    /// A running broker, by its bootstrap servers.
    case existing(String)
  }

  package var layout: FleetLayout
  package var workers: Int
  package var broker: Broker
  /// The URL of a running PostgreSQL; nil starts one in the data directory.
  package var postgres: String?
  package var topicPrefix: String
  /// The program whose `worker` command runs the workers.
  package var executable: String
  /// More settings for the workers. They override this process's environment.
  package var workerSettings: [String: String]
  /// What the user has set for workers. The fleet's own values override it.
  package var givenSettings: [String: String] = [:]
  /// Variables that are set to empty for the workers, and in the fleet's environment file.
  package var unset: [String] = []

  package init(
    layout: FleetLayout, workers: Int, broker: Broker, postgres: String?, topicPrefix: String, executable: String,
    workerSettings: [String: String] = [:]
  ) {
    self.layout = layout
    self.workers = workers
    self.broker = broker
    self.postgres = postgres
    self.topicPrefix = topicPrefix
    self.executable = executable
    self.workerSettings = workerSettings
  }
}
