import CReelhaulKafka

/// The common parts of group members and readers.
extension KafkaHandle {
  static let fetching = [
    // If the position no longer exists, fetching continues at the earliest record. The missing records are reported as
    // a gap.
    "auto.offset.reset": "earliest",
    // These limit memory: the records fetched ahead, and an answer, which is counted before it is decompressed. Once
    // the queue is full, librdkafka 2.0 checks it again only after up to a second.
    "queued.max.messages.kbytes": "4096",
    "fetch.max.bytes": "262144",
    "fetch.wait.max.ms": "100",
    "fetch.error.backoff.ms": "100",
  ]

  /// The earliest offset of the partition, as of the last fetch; 0 before the first one.
  func logStart(of partition: TopicPartition) -> Int64 {
    var low: Int64 = 0
    var high: Int64 = 0
    rd_kafka_get_watermark_offsets(raw, partition.topic, partition.partition, &low, &high)
    return low
  }

  /// The offset behind the last record of the partition, as of the last fetch; negative before the first one.
  func logEnd(of partition: TopicPartition) -> Int64 {
    var low: Int64 = 0
    var high: Int64 = 0
    rd_kafka_get_watermark_offsets(raw, partition.topic, partition.partition, &low, &high)
    return high
  }

  /// Carries out the decision about a record. Returns false if the record must be dropped.
  func follow(_ reception: ReadPosition.Reception, to message: UnsafePointer<rd_kafka_message_t>) -> Bool {
    switch reception {
    case .accept: return true
    case .seek(let offset):
      // Without a timeout the call does not wait. Queued records of the partition are void from now on.
      rd_kafka_seek(message.pointee.rkt, message.pointee.partition, offset, 0)
      return false
    case .gap(let expected):
      let topic = String(cString: rd_kafka_topic_name(message.pointee.rkt))
      let partition = TopicPartition(topic, message.pointee.partition)
      notice(.gap(partition, expected: expected, found: message.pointee.offset))
      return true
    }
  }
}
