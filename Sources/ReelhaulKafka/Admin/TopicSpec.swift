/// A topic as it shall be.
package struct TopicSpec: Hashable, Sendable {
  package let name: String
  package let partitions: Int
  /// Copies of each partition; `nil` leaves it to ``replicated(over:)``.
  package let replicas: Int?
  /// Kafka's topic settings (`retention.ms` …); what is not named is the cluster's default.
  package let settings: [String: String]

  package init(name: String, partitions: Int, replicas: Int? = nil, settings: [String: String] = [:]) {
    self.name = name
    self.partitions = partitions
    self.replicas = replicas
    self.settings = settings
  }

  /// The topic on a cluster of so many brokers: three copies where there are three brokers, two of which must have a
  /// record before it is acknowledged, so that any broker may be lost. Kafka's own defaults are one copy and one broker.
  func replicated(over brokers: Int) -> TopicSpec {
    let replicas = replicas ?? min(3, max(1, brokers))
    let durability = replicas >= 3 ? ["min.insync.replicas": "2"] : [:]
    return TopicSpec(
      name: name, partitions: partitions, replicas: replicas, settings: durability.merging(settings) { $1 })
  }
}
