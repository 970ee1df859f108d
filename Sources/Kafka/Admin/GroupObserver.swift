import CRdKafka
import System

/// Looks at how far a consumer group is with a topic, without being its member.
package final class GroupObserver: Sendable {
  package struct Position: Hashable, Sendable {
    /// Records that the group has committed, of all partitions.
    package var committed: Int64
    /// Records behind those; where nothing is committed of a partition, all it has.
    package var unread: Int64

    package init(committed: Int64 = 0, unread: Int64 = 0) {
      self.committed = committed
      self.unread = unread
    }
  }

  private let handle: KafkaHandle
  private let topic: String
  private let milliseconds: Int32
  private let pool: BlockingPool

  /// Does not connect. `timeout` bounds each request. To be closed.
  package init(
    _ configuration: KafkaConfiguration, group: String, topic: String, timeout: Duration = .seconds(5)
  ) throws(KafkaError) {
    handle = try KafkaHandle(
      .reader, configuration, required: ["group.id": group, "enable.auto.commit": "false"])
    self.topic = topic
    milliseconds = Int32(clamping: timeout.milliseconds)
    pool = BlockingPool(name: "kafka-group", threads: 1)
  }

  package func position() async throws(KafkaError) -> Position {
    do {
      return try await pool.run { [self] in try look() }
    } catch let error as KafkaError {
      throw error
    } catch {
      throw .closed("the observer of a group")
    }
  }

  package func close() async {
    _ = try? await pool.run { [handle] in handle.destroy() }
    pool.shutdown()
  }

  private func look() throws(KafkaError) -> Position {
    defer { handle.drain() }
    let cluster = try ClusterMetadata.ask(handle.raw, milliseconds: milliseconds)
    let list = PartitionList((0..<Int32(cluster.topics[topic] ?? 0)).map { TopicPartition(topic, $0) })
    try check(list.lend { rd_kafka_committed(handle.raw, $0, milliseconds) }, "what the group committed")
    let committed = list.offsets
    var position = Position()
    for partition in list.lend({ PartitionList.partitions($0) }) {
      var (start, end): (Int64, Int64) = (0, 0)
      try check(
        rd_kafka_query_watermark_offsets(
          handle.raw, partition.topic, partition.partition, &start, &end, milliseconds),
        "where partition \(partition.partition) ends")
      let next = max(start, committed[partition] ?? start)
      position.committed += committed[partition] ?? 0
      position.unread += max(0, end - next)
    }
    return position
  }

  private func check(_ code: rd_kafka_resp_err_t, _ what: String) throws(KafkaError) {
    if code != RD_KAFKA_RESP_ERR_NO_ERROR { throw KafkaError(code, what) }
  }
}
