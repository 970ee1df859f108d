import CReelhaulKafka

/// librdkafka's own cluster of one broker, which fails as it is told to.
// @unchecked: librdkafka locks the cluster for each call.
package final class MockCluster: @unchecked Sendable {
  private let client: OpaquePointer
  private let cluster: OpaquePointer

  package init(topics: [String], partitions: Int32 = 1) {
    client = rd_kafka_new(RD_KAFKA_PRODUCER, nil, nil, 0)
    cluster = rd_kafka_mock_cluster_new(client, 1)
    for topic in topics { rd_kafka_mock_topic_create(cluster, topic, partitions, 1) }
  }

  package func close() {
    rd_kafka_mock_cluster_destroy(cluster)
    rd_kafka_destroy(client)
  }

  package var bootstrap: String { String(cString: rd_kafka_mock_cluster_bootstraps(cluster)) }

  /// From now on the cluster answers so when it is asked about a topic.
  package func answers(_ code: rd_kafka_resp_err_t, about topic: String) {
    rd_kafka_mock_topic_set_error(cluster, topic, code)
  }

  /// The next request that writes records is refused.
  package func refusesNextWrite(_ code: rd_kafka_resp_err_t) {
    let produce: Int16 = 0
    rd_kafka_mock_push_request_errors_array(cluster, produce, 1, [code])
  }

  /// Whether the broker takes no connections.
  package func goes(down: Bool) {
    let broker: Int32 = 1
    if down { rd_kafka_mock_broker_set_down(cluster, broker) } else { rd_kafka_mock_broker_set_up(cluster, broker) }
  }
}
