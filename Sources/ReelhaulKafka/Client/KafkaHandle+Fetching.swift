import CReelhaulKafka

/// What a group member and a reader have in common.
extension KafkaHandle {
  static let fetching = [
    // A position that is gone: the earliest record there is; what is missing before it is a gap.
    "auto.offset.reset": "earliest",
    // Memory: what is fetched ahead, and an answer, which is counted before it is decompressed. Once the queue is full,
    // librdkafka 2.0 looks again only after up to a second.
    "queued.max.messages.kbytes": "4096",
    "fetch.max.bytes": "262144",
    "fetch.wait.max.ms": "100",
    "fetch.error.backoff.ms": "100",
  ]

  /// The earliest offset of the partition, as the last fetch told it; 0 before.
  func logStart(of partition: TopicPartition) -> Int64 {
    var low: Int64 = 0
    var high: Int64 = 0
    rd_kafka_get_watermark_offsets(raw, partition.topic, partition.partition, &low, &high)
    return low
  }

  /// Does what a record's reception asks for; `false` when the record shall be dropped.
  func follow(_ reception: ReadPosition.Reception, to message: UnsafePointer<rd_kafka_message_t>) -> Bool {
    switch reception {
    case .accept: return true
    case .seek(let offset):
      // Without a timeout it does not wait; what is queued of the partition is void from here on.
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
