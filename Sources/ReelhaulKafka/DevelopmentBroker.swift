import CReelhaulKafka

/// A Kafka broker inside this process, on the loopback interface and in memory. It speaks the real protocol, so any
/// client on this machine may use it. It ends with the process, and has a new port at every start.
///
/// Known limits: a partition keeps its newest 5 MB or 100,000 record batches and silently drops older ones. Topics
/// cannot be created or described through the admin protocol (give them to ``init(topics:observer:)``; others are created on
/// first use with four partitions). There is no compaction, retention time, TLS or authentication. Records of a
/// transaction are visible before it is committed, and stay if it is aborted. Producers with the same
/// `transactional.id` do not fence each other.
package final class DevelopmentBroker: Sendable {
  /// `host:port`.
  package let bootstrap: String
  private let thread: PollThread
  private let handle: StoppableHandle

  package init(topics: [TopicSpec], observer: @escaping KafkaObserver = { _ in }) throws(KafkaError) {
    // Never used to connect: the mock cluster only needs a client to live in.
    let configuration = try KafkaConfiguration(bootstrap: "127.0.0.1:9", observer: observer)
    let kafka = try KafkaHandle(.producer, configuration, defaults: ["log_level": "0"])
    guard let cluster = rd_kafka_mock_cluster_new(kafka.raw, 1) else {
      kafka.destroy()
      throw KafkaError(code: .transport, message: "the development broker cannot listen on 127.0.0.1")
    }
    for topic in topics {
      let code = rd_kafka_mock_topic_create(cluster, topic.name, Int32(clamping: topic.partitions), 1)
      guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
        rd_kafka_mock_cluster_destroy(cluster)
        kafka.destroy()
        throw KafkaError(code, "topic \(topic.name)")
      }
    }
    bootstrap = String(cString: rd_kafka_mock_cluster_bootstraps(cluster))
    let handle = StoppableHandle(kafka)
    self.handle = handle
    let owned = CPointer(cluster)
    thread = PollThread(name: "kafka-broker") {
      while !handle.isStopping {
        if let event = kafka.poll(milliseconds: 1000) { _ = kafka.observe(event) }
      }
      rd_kafka_mock_cluster_destroy(owned.pointer)
      kafka.destroy()
    }
  }

  deinit {
    handle.stop()
  }

  /// Stops listening and forgets everything.
  package func close() async {
    handle.stop()
    await thread.ended()
  }
}

/// A C object on its way to the thread that owns it.
// @unchecked: used to hand over ownership, once.
private struct CPointer: @unchecked Sendable {
  let pointer: OpaquePointer

  init(_ pointer: OpaquePointer) { self.pointer = pointer }
}
