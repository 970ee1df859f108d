import CReelhaulKafka

/// The number of brokers and the topics of a cluster, as the cluster reports them.
package struct ClusterMetadata: Hashable, Sendable {
  package let brokers: Int
  /// The number of partitions of each topic.
  package let topics: [String: Int]
  /// The smallest number of replicas of a topic's partitions, for each topic.
  package let replicas: [String: Int]
  /// The topics of which the cluster cannot say now whether they exist.
  package let unsure: Set<String>

  /// Asks the cluster, and blocks for up to `milliseconds`. On a cluster that creates topics on first use, asking for
  /// one topic creates it.
  static func ask(
    _ client: OpaquePointer, topic: OpaquePointer? = nil, milliseconds: Int32
  ) throws(KafkaError) -> ClusterMetadata {
    var answer: UnsafePointer<rd_kafka_metadata>?
    let code = rd_kafka_metadata(client, topic == nil ? 1 : 0, topic, &answer, milliseconds)
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let answer else {
      throw KafkaError(code, "no Kafka broker answered within \(milliseconds) ms")
    }
    defer { rd_kafka_metadata_destroy(answer) }
    let brokers = Int(answer.pointee.broker_cnt)
    // A broker that has just started, and has not heard of the cluster yet, knows no topic.
    guard brokers > 0 else { throw KafkaError(RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, "the broker knows of none") }
    let topics = UnsafeBufferPointer(start: answer.pointee.topics, count: Int(answer.pointee.topic_cnt))
    var (partitionCounts, replicaCounts): ([String: Int], [String: Int]) = ([:], [:])
    var unsure: Set<String> = []
    for topic in topics {
      let name = String(cString: topic.topic)
      guard topic.err == RD_KAFKA_RESP_ERR_NO_ERROR else {
        if topic.err != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART { unsure.insert(name) }
        continue
      }
      let partitions = UnsafeBufferPointer(start: topic.partitions, count: Int(topic.partition_cnt))
      partitionCounts[name] = partitions.count
      replicaCounts[name] = partitions.map { Int($0.replica_cnt) }.min()
    }
    return ClusterMetadata(
      brokers: brokers, topics: partitionCounts, replicas: replicaCounts, unsure: unsure)
  }
}
