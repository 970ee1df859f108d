import CReelhaulKafka

/// Owns a list of partitions with offsets, in librdkafka's form.
struct PartitionList: ~Copyable {
  private let raw: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>

  init(_ partitions: some Collection<TopicPartition>) {
    raw = rd_kafka_topic_partition_list_new(Int32(clamping: partitions.count))
    for partition in partitions { add(partition) }
  }

  deinit { rd_kafka_topic_partition_list_destroy(raw) }

  func add(_ partition: TopicPartition, offset: Int64? = nil) {
    let element = rd_kafka_topic_partition_list_add(raw, partition.topic, partition.partition)
    if let offset { element?.pointee.offset = offset }
  }

  /// Lends the list for one call. A bare pointer would not keep the list alive, because an owner may end after its
  /// last use.
  borrowing func lend<Result>(
    _ body: (UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) -> Result
  ) -> Result {
    body(raw)
  }

  /// The valid offsets of the list, without librdkafka's negative marks.
  var offsets: [TopicPartition: Int64] {
    var offsets: [TopicPartition: Int64] = [:]
    for element in Self.elements(raw) where element.offset >= 0 {
      offsets[TopicPartition(String(cString: element.topic), element.partition)] = element.offset
    }
    return offsets
  }

  /// The partitions of an answer for which there is no offset.
  var absent: [TopicPartition] {
    Self.elements(raw).filter { $0.err == RD_KAFKA_RESP_ERR_NO_ERROR && $0.offset < 0 }
      .map { TopicPartition(String(cString: $0.topic), $0.partition) }
  }

  static func elements(
    _ list: UnsafePointer<rd_kafka_topic_partition_list_t>
  ) -> UnsafeBufferPointer<rd_kafka_topic_partition_t> {
    UnsafeBufferPointer(start: list.pointee.elems, count: Int(list.pointee.cnt))
  }

  static func partitions(_ list: UnsafePointer<rd_kafka_topic_partition_list_t>) -> [TopicPartition] {
    elements(list).map { TopicPartition(String(cString: $0.topic), $0.partition) }
  }
}

package struct TopicPartition: Hashable, Sendable, CustomStringConvertible {
  package let topic: String
  package let partition: Int32

  package init(_ topic: String, _ partition: Int32) {
    self.topic = topic
    self.partition = partition
  }

  package var description: String { "\(topic)[\(partition)]" }
}
