import CReelhaulKafka
import ReelhaulSystem

/// Observes how far a consumer group has read a topic, without being a member of the group.
package final class GroupObserver: Sendable {
  package struct Position: Hashable, Sendable {
    /// The number of records that the group has committed, in all partitions.
    package var committed: Int64
    /// The number of records after those, as far as the logs have them. In a partition without a committed offset, all
    /// records count.
    package var unread: Int64
    /// The number of those that are gone from the logs.
    package var lost: Int64

    package init(committed: Int64 = 0, unread: Int64 = 0, lost: Int64 = 0) {
      self.committed = committed
      self.unread = unread
      self.lost = lost
    }
  }

  private let client: BlockingClient
  private let topic: String
  private let milliseconds: Int32

  /// Does not connect. `timeout` limits each request.
  package init(
    _ configuration: KafkaConfiguration, group: String, topic: String, timeout: Duration = .seconds(5)
  ) throws(KafkaError) {
    let required = ["group.id": group, "enable.auto.commit": "false"]
    client = BlockingClient(try KafkaHandle(.reader, configuration, required: required), name: "kafka-group")
    self.topic = topic
    milliseconds = Int32(clamping: timeout.milliseconds)
  }

  /// Whether the group has an offset in every partition: so each of them was read by a member, at least once.
  package func hasEveryPartition() async throws(KafkaError) -> Bool {
    try await client.run(retryingFor: milliseconds) { [self] () throws(KafkaError) in
      let partitions = try partitions()
      let committed = try committed(in: partitions)
      return !partitions.isEmpty && committed.count == partitions.count
    }
  }

  package func position() async throws(KafkaError) -> Position {
    try await client.run(retryingFor: milliseconds) { [self] () throws(KafkaError) in try positionNow() }
  }

  /// The ends of the logs of all partitions now.
  package func ends() async throws(KafkaError) -> [TopicPartition: Int64] {
    try await client.run(retryingFor: milliseconds) { [self] () throws(KafkaError) in
      try handle.bounds(of: partitions(), milliseconds: milliseconds).ends
    }
  }

  /// Whether the group has committed all that came before these ends, as far as the logs have it.
  package func hasRead(before ends: [TopicPartition: Int64]) async throws(KafkaError) -> Bool {
    try await client.run(retryingFor: milliseconds) { [self] () throws(KafkaError) in
      let committed = try committed(in: Array(ends.keys))
      let starts = try handle.offsets(of: Array(ends.keys), at: .first, milliseconds: milliseconds)
      return ends.allSatisfy { partition, end in max(committed[partition] ?? 0, starts[partition] ?? 0) >= end }
    }
  }

  private var handle: KafkaHandle { client.handle }

  /// The partitions of the topic.
  private func partitions() throws(KafkaError) -> [TopicPartition] {
    let cluster = try ClusterMetadata.ask(handle.raw, milliseconds: milliseconds)
    return (0..<Int32(cluster.topics[topic] ?? 0)).map { TopicPartition(topic, $0) }
  }

  /// The offsets that the group has committed.
  private func committed(in partitions: [TopicPartition]) throws(KafkaError) -> [TopicPartition: Int64] {
    let list = PartitionList(partitions)
    let code = list.lend { rd_kafka_committed(handle.raw, $0, milliseconds) }
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(code, "the group's committed offsets") }
    return list.offsets
  }

  private func positionNow() throws(KafkaError) -> Position {
    let partitions = try partitions()
    let committed = try committed(in: partitions)
    let (starts, ends) = try handle.bounds(of: partitions, milliseconds: milliseconds)
    var position = Position()
    for partition in partitions {
      let (start, next) = (starts[partition] ?? 0, committed[partition] ?? 0)
      position.committed &+= next
      position.unread += max(0, (ends[partition] ?? 0) - max(start, next))
      position.lost += max(0, start - next)
    }
    return position
  }
}
