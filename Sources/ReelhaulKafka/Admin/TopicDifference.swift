/// How an existing topic differs from the plan. It is only reported, because whoever created the topic may have had
/// reasons.
package struct TopicDifference: Hashable, Sendable, CustomStringConvertible {
  package let topic: String
  /// A Kafka topic setting, or `partitions`, or `replicas` if there are fewer than planned.
  package let setting: String
  package let planned: String
  package let actual: String

  package var description: String { "\(topic): \(setting) is \(actual), planned \(planned)" }

  /// Compares a topic with its plan. `settings` is nil if the broker does not report them.
  static func compare(
    _ planned: TopicSpec, partitions: Int, replicas: Int?, settings: [String: String]?
  ) -> [TopicDifference] {
    var differences: [TopicDifference] = []
    if partitions != planned.partitions {
      differences.append(
        TopicDifference(
          topic: planned.name, setting: "partitions", planned: String(planned.partitions), actual: String(partitions)))
    }
    if let replicas, let wanted = planned.replicas, replicas < wanted {
      differences.append(
        TopicDifference(topic: planned.name, setting: "replicas", planned: String(wanted), actual: String(replicas)))
    }
    guard let settings else { return differences }
    for (name, value) in planned.settings.sorted(by: { $0.key < $1.key }) where settings[name] != value {
      differences.append(
        TopicDifference(topic: planned.name, setting: name, planned: value, actual: settings[name] ?? "unknown"))
    }
    return differences
  }
}
