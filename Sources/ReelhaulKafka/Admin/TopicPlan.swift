/// The topics of a fleet, by their content. All names start with one prefix, so fleets can share a cluster.
package struct TopicPlan: Hashable, Sendable {
  package let prefix: String
  /// The number of partitions of the topics that workers share among them.
  package let partitions: Int

  package init(prefix: String = "reelhaul.", partitions: Int = 48) {
    self.prefix = prefix
    self.partitions = partitions
  }

  /// Throws `invalidArgument` if Kafka would refuse a topic of this name.
  package init(checking prefix: String) throws(KafkaError) {
    self.init(prefix: prefix)
    let isValid = prefix.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
        true
      default: false
      }
    }
    guard isValid else {
      throw KafkaError(
        code: .invalidArgument,
        message: "the topic prefix \"\(prefix)\" has characters that Kafka's topics cannot have: "
          + "it may have letters, digits, \".\", \"_\" and \"-\"")
    }
    let longest = topics.map(\.name.utf8.count).max() ?? 0
    guard longest <= Self.nameLimit else {
      throw KafkaError(
        code: .invalidArgument,
        message: "the topic prefix is \(longest - Self.nameLimit) characters too long: "
          + "a topic's name may have \(Self.nameLimit)")
    }
  }

  /// Kafka's limit, in bytes.
  private static let nameLimit = 249

  /// The consumer group of the workers.
  package var group: String { prefix + "workers" }
  /// The `transactional.id` of the relay: one fleet has one.
  package var relay: String { prefix + "relay" }
  package var commands: String { prefix + "commands" }
  package var signals: String { prefix + "signals" }
  package var progress: String { prefix + "progress" }
  package var events: String { prefix + "events" }
  package var tasks: String { prefix + "tasks" }
  package var deadLetters: String { prefix + "dead-letters" }

  package var topics: [TopicSpec] {
    let day = 86_400_000
    return [
      Self.topic(
        commands, partitions,
        [
          "cleanup.policy": "delete", "retention.ms": String(7 * day), "segment.ms": String(day),
          "max.message.bytes": "1048588",
        ]),
      // Every worker reads all of these topics, so they have few partitions and short retention.
      Self.topic(signals, 4, ["cleanup.policy": "delete", "retention.ms": "600000", "segment.ms": "600000"]),
      Self.topic(
        progress, 12,
        [
          "cleanup.policy": "delete", "retention.ms": "3600000", "segment.ms": "600000", "compression.type": "lz4",
        ]),
      // An event or a dead letter is a command with additions, so these topics must accept larger records.
      Self.topic(
        events, 12, ["cleanup.policy": "delete", "retention.ms": String(7 * day), "max.message.bytes": "2097152"]),
      Self.topic(tasks, 12, ["cleanup.policy": "compact", "max.message.bytes": "2097152"]),
      Self.topic(
        deadLetters, 4,
        ["cleanup.policy": "delete", "retention.ms": String(90 * day), "max.message.bytes": "2097152"]),
    ]
  }

  /// Its records have the time of the broker. With that of a producer whose clock is wrong, they would be refused, or be
  /// dropped before their time.
  private static func topic(_ name: String, _ partitions: Int, _ settings: [String: String]) -> TopicSpec {
    TopicSpec(
      name: name, partitions: partitions,
      settings: settings.merging(["message.timestamp.type": "LogAppendTime"]) { $1 })
  }
}
