/// The planned properties of a topic.
package struct TopicSpec: Hashable, Sendable {
  package let name: String
  package let partitions: Int
  /// The number of copies of each partition; nil leaves it to ``replicated(over:)``.
  package let replicas: Int?
  /// Kafka's topic settings (`retention.ms` …). The cluster's defaults apply to all others.
  package let settings: [String: String]

  package init(name: String, partitions: Int, replicas: Int? = nil, settings: [String: String] = [:]) {
    self.name = name
    self.partitions = partitions
    self.replicas = replicas
    self.settings = settings
  }

  /// The topic on a cluster with `brokers` brokers. With three or more, it has three copies, two of which must have a
  /// record before it is acknowledged, so that any one broker may be lost. Kafka's own defaults are one copy and one
  /// broker.
  func replicated(over brokers: Int) -> TopicSpec {
    let replicas = replicas ?? min(3, max(1, brokers))
    let durability = replicas >= 3 ? ["min.insync.replicas": "2"] : [:]
    return TopicSpec(
      name: name, partitions: partitions, replicas: replicas, settings: durability.merging(settings) { $1 })
  }
}
