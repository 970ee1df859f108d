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

  /// Nil if the name cannot be a topic's.
  mutating func handle(_ name: String) -> OpaquePointer? {
    for (known, handle) in handles where known == name { return handle }
    guard let handle = rd_kafka_topic_new(client, name, nil) else { return nil }
    handles.append((name, handle))
    return handle
  }
}
