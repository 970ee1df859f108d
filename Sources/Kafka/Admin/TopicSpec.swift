/// A topic as it shall be.
package struct TopicSpec: Hashable, Sendable {
  package let name: String
  package let partitions: Int
  /// Kafka's topic settings (`retention.ms` …); what is not named is the cluster's default.
  package let settings: [String: String]

  package init(name: String, partitions: Int, settings: [String: String] = [:]) {
    self.name = name
    self.partitions = partitions
    self.settings = settings
  }
}
