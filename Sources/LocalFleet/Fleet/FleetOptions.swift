/// What a local fleet is made of.
package struct FleetOptions: Sendable {
  package enum Broker: Sendable, Hashable {
    /// The development broker within this process; it forgets everything with it.
    case embedded
    /// A node of Apache Kafka from the distribution at `home`, its data in the data directory.
    case apacheKafka(home: String)
    /// One that runs already: its bootstrap servers.
    case existing(String)
  }

  package var layout: FleetLayout
  package var workers: Int
  package var broker: Broker
  /// The URL of a running PostgreSQL; nil starts one in the data directory.
  package var postgres: String?
  package var topicPrefix: String
  /// The program whose `worker` command the workers are.
  package var executable: String
  /// Further settings of the workers, over those of this process's environment.
  package var workerSettings: [String: String]
  /// Variables that are empty for the workers, and for whoever reads the fleet's environment file.
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
