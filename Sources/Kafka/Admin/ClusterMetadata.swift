import CRdKafka

/// What a cluster says about itself.
package struct ClusterMetadata: Hashable, Sendable {
  package struct Broker: Hashable, Sendable {
    package let id: Int32
    package let host: String
    package let port: Int
  }

  package let brokers: [Broker]
  /// Partitions by topic.
  package let topics: [String: Int]

  /// Asks, and blocks for up to `milliseconds`. Asking for one topic makes it, on a cluster that makes topics on first use.
  static func ask(
    _ client: OpaquePointer, topic: OpaquePointer? = nil, milliseconds: Int32
  ) throws(KafkaError) -> ClusterMetadata {
    var answer: UnsafePointer<rd_kafka_metadata>?
    let code = rd_kafka_metadata(client, topic == nil ? 1 : 0, topic, &answer, milliseconds)
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let answer else {
      throw KafkaError(code, "no Kafka broker answered within \(milliseconds) ms")
    }
    defer { rd_kafka_metadata_destroy(answer) }
    let brokers = UnsafeBufferPointer(start: answer.pointee.brokers, count: Int(answer.pointee.broker_cnt))
    let topics = UnsafeBufferPointer(start: answer.pointee.topics, count: Int(answer.pointee.topic_cnt))
    return ClusterMetadata(
      brokers: brokers.map { Broker(id: $0.id, host: String(cString: $0.host), port: Int($0.port)) },
      topics: Dictionary(
        topics.filter { $0.err == RD_KAFKA_RESP_ERR_NO_ERROR }
          .map { (String(cString: $0.topic), Int($0.partition_cnt)) }, uniquingKeysWith: { $1 }))
  }
}
