import CReelhaulKafka
import Glibc

/// Copies records out of librdkafka's memory.
struct RecordCopier {
  /// The topic of the previous record. It is nearly always the topic of the next one.
  private var topic = ""
  private var topicBytes: [CChar] = [0]

  mutating func copy(_ message: UnsafePointer<rd_kafka_message_t>) -> KafkaRecord {
    if let name = rd_kafka_topic_name(message.pointee.rkt), strcmp(name, topicBytes) != 0 {
      topic = String(cString: name)
      topicBytes = Array(topic.utf8CString)
    }
    var kind = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
    let timestamp = rd_kafka_message_timestamp(message, &kind)
    return KafkaRecord(
      topic: topic, partition: message.pointee.partition, offset: message.pointee.offset,
      timestamp: kind == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? nil : timestamp,
      key: Self.bytes(message.pointee.key, message.pointee.key_len),
      value: Self.bytes(message.pointee.payload, message.pointee.len), headers: Self.headers(message))
  }

  private static func bytes(_ start: UnsafeRawPointer?, _ count: Int) -> [UInt8]? {
    start.map { [UInt8](UnsafeRawBufferPointer(start: $0, count: count)) }
  }

  private static func headers(_ message: UnsafePointer<rd_kafka_message_t>) -> [KafkaHeader] {
    // The message owns the list.
    var list: OpaquePointer?
    guard rd_kafka_message_headers(message, &list) == RD_KAFKA_RESP_ERR_NO_ERROR else { return [] }
    var headers: [KafkaHeader] = []
    headers.reserveCapacity(rd_kafka_header_cnt(list))
    var name: UnsafePointer<CChar>?
    var value: UnsafeRawPointer?
    var size = 0
    while rd_kafka_header_get_all(list, headers.count, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR, let name {
      headers.append(KafkaHeader(String(cString: name), bytes(value, size) ?? []))
    }
    return headers
  }
}
