import CReelhaulKafka

/// Owns one event taken from a queue. All data read from the event is valid as long as the event lives.
struct KafkaEvent: ~Copyable {
  let raw: OpaquePointer

  deinit { rd_kafka_event_destroy(raw) }

  var type: Int32 { rd_kafka_event_type(raw) }
  var code: rd_kafka_resp_err_t { rd_kafka_event_error(raw) }

  /// The failure that the event reports, or nil.
  var error: KafkaError? {
    guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
    let text = rd_kafka_event_error_string(raw).map { String(cString: $0) }
    return KafkaError(
      code: KafkaError.Code(code), message: text ?? String(cString: rd_kafka_err2str(code)),
      isFatal: type == RD_KAFKA_EVENT_ERROR && rd_kafka_event_error_is_fatal(raw) != 0)
  }

  /// Where a partition ends, if that is what the event reports.
  var end: (partition: TopicPartition, offset: Int64)? {
    guard type == RD_KAFKA_EVENT_ERROR, code == RD_KAFKA_RESP_ERR__PARTITION_EOF,
      let end = rd_kafka_event_topic_partition(raw)
    else { return nil }
    defer { rd_kafka_topic_partition_destroy(end) }
    return (TopicPartition(String(cString: end.pointee.topic), end.pointee.partition), end.pointee.offset)
  }

  /// Calls `body` with each message of a fetch or a delivery report.
  func forEachMessage(_ body: (UnsafePointer<rd_kafka_message_t>) -> Void) {
    while let message = rd_kafka_event_message_next(raw) {
      body(message)
    }
  }

  /// The partitions of a rebalance or a commit. The event owns them.
  var partitions: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>? {
    rd_kafka_event_topic_partition_list(raw)
  }
}
