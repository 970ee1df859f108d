import CReelhaulKafka

/// Owns the topic objects of one client. Each is made on first use.
struct TopicHandles: ~Copyable {
  let client: OpaquePointer
  /// A list suffices, because a producer writes to only a few topics, in turn.
  private var handles: [(name: String, handle: OpaquePointer)] = []

  init(client: OpaquePointer) {
    self.client = client
  }

  deinit {
    for (_, handle) in handles { rd_kafka_topic_destroy(handle) }
  }

  /// Nil if the name cannot be the name of a topic.
  mutating func handle(_ name: String) -> OpaquePointer? {
    for (known, handle) in handles where known == name { return handle }
    guard let handle = rd_kafka_topic_new(client, name, nil) else { return nil }
    handles.append((name, handle))
    return handle
  }
}

extension TopicHandles {
  /// Gives a message to librdkafka; its delivery report will carry `opaque`.
  mutating func produce(_ message: KafkaMessage, opaque: UnsafeMutableRawPointer? = nil) -> rd_kafka_resp_err_t {
    guard let topic = handle(message.topic) else { return RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION }
    let headers = Self.headers(message.headers)
    let code = Self.withBytes(message.key) { key in
      Self.withBytes(message.value) { value in
        rh_kafka_produce(
          client, topic, message.partition ?? -1, key.baseAddress, key.count, value.baseAddress, value.count, headers,
          opaque)
      }
    }
    if code != RD_KAFKA_RESP_ERR_NO_ERROR, let headers { rd_kafka_headers_destroy(headers) }
    return code
  }

  private static func headers(_ headers: [KafkaHeader]) -> OpaquePointer? {
    guard !headers.isEmpty else { return nil }
    let list = rd_kafka_headers_new(headers.count)
    for header in headers {
      var name = header.name
      _ = name.withUTF8 { name in
        name.withMemoryRebound(to: CChar.self) { name in
          withBytes(header.value) { value in
            rd_kafka_header_add(list, name.baseAddress, name.count, value.baseAddress, value.count)
          }
        }
      }
    }
    return list
  }

  /// `nil` becomes NULL. An empty array becomes a pointer to zero bytes, because Kafka distinguishes the two.
  private static func withBytes<Result>(_ bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    guard let bytes else { return body(UnsafeRawBufferPointer(start: nil, count: 0)) }
    guard !bytes.isEmpty else {
      var nothing: UInt8 = 0
      return withUnsafePointer(to: &nothing) { body(UnsafeRawBufferPointer(start: $0, count: 0)) }
    }
    return bytes.withUnsafeBytes(body)
  }
}
