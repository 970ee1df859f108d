import CRdKafka

/// Owns the topic objects of one client, each made on first use.
struct TopicHandles: ~Copyable {
  let client: OpaquePointer
  private var handles: [String: OpaquePointer] = [:]
  private var last: (name: String, handle: OpaquePointer)?

  init(client: OpaquePointer) {
    self.client = client
  }

  deinit {
    for handle in handles.values { rd_kafka_topic_destroy(handle) }
  }

  /// `nil` for a name that cannot be a topic's.
  mutating func handle(_ name: String) -> OpaquePointer? {
    if let last, last.name == name { return last.handle }
    guard let handle = handles[name] ?? rd_kafka_topic_new(client, name, nil) else { return nil }
    handles[name] = handle
    last = (name, handle)
    return handle
  }
}
