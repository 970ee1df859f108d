import CReelhaulKafka

extension KafkaHandle {
  /// The beginning or the end of a partition's log, with Kafka's number for it.
  enum LogEnd: Int64 {
    case last = -1
    case first = -2
  }

  /// The offsets of the partitions' first records, and the offsets after their last records. A beginning that is not
  /// reported is left out, and an end that is not reported is a retryable error. Blocks.
  func bounds(
    of partitions: [TopicPartition], milliseconds: Int32
  ) throws(KafkaError) -> (starts: [TopicPartition: Int64], ends: [TopicPartition: Int64]) {
    let starts = try offsets(of: partitions, at: .first, milliseconds: milliseconds)
    let ends = try offsets(of: partitions, at: .last, milliseconds: milliseconds)
    guard ends.count == partitions.count else {
      throw KafkaError(RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, "the ends of partitions")
    }
    return (starts, ends)
  }

  /// The offsets of the partitions' first records, or the offsets after their last records. A partition is left out if
  /// its offset is not reported. Sends one request per broker, and blocks for up to `milliseconds`.
  func offsets(
    of partitions: [TopicPartition], at end: LogEnd, milliseconds: Int32
  ) throws(KafkaError) -> [TopicPartition: Int64] {
    guard !partitions.isEmpty else { return [:] }
    let list = PartitionList([])
    for partition in partitions { list.add(partition, offset: end.rawValue) }
    let code = list.lend { rd_kafka_offsets_for_times(raw, $0, milliseconds) }
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(code, "the beginnings and ends of partitions") }
    return list.offsets
  }

  /// The first record of this time or later, in milliseconds since 1970; nil if all are older. Blocks.
  func offset(
    of partition: TopicPartition, at time: Int64, milliseconds: Int32
  ) throws(KafkaError) -> Int64? {
    let list = PartitionList([])
    list.add(partition, offset: time)
    let code = list.lend { rd_kafka_offsets_for_times(raw, $0, milliseconds) }
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(code, "the offset of a time in \(partition)") }
    return list.offsets[partition]
  }
}
